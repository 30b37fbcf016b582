"""Checks of gradients against finite differences."""

from .gradcheck import gradcheck, gradgradcheck

__all__ = ["gradcheck", "gradgradcheck"]
