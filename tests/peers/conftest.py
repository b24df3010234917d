"""Prints the share of the peer scenarios that needed a person."""

from peers.share import pytest_terminal_summary

__all__ = ["pytest_terminal_summary"]
