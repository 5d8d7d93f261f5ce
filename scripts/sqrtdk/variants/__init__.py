"""Variants of attention: scale rules, score transforms, normalisers, and the way to write them.

It knows the rooms up to `theory`.
"""

from typing import TYPE_CHECKING

from sqrtdk import public

if TYPE_CHECKING:
    from sqrtdk.variants.notation import Variant as Variant
    from sqrtdk.variants.notation import VariantError as VariantError
    from sqrtdk.variants.notation import parse as parse

__all__ = ["Variant", "VariantError", "parse"]
__getattr__, __dir__ = public(__name__, {"Variant": "notation", "VariantError": "notation", "parse": "notation"})
