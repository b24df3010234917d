"""What tests of code on Ascertain need; shipped, and imported by nothing in the package."""

from ascertain.testing.clock import FakeClock

__all__ = ["FakeClock"]
