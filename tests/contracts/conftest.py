"""One shop per test, on a virtual clock."""

from shop import make_shop, shop

__all__ = ["make_shop", "shop"]
