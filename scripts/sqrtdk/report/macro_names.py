"""Names of letters alone, which is all that a TeX macro may have."""

import hashlib
import re

from sqrtdk.variants.scalings import SCALINGS

_DIGITS = "Zero One Two Three Four Five Six Seven Eight Nine"
_SIGNS = {"/": " Over ", "*": " Times ", "(": " ", ")": " ", "+": " Plus ", "|": " ", ".": " Point ", "=": " "}
_RULES = {"none": "Unscaled"}


def letters(text: str) -> str:
    """Return a name as letters alone, each word with a capital: `student_t_3` is StudentTThree, `1/d_k` OneOverDK.

    Where that loses a sign, letters that follow from the whole name are added; a scale rule needs none.
    """
    if text in _RULES:
        return _RULES[text]
    literal = text
    for sign, word in {**_SIGNS, **{str(digit): f" {word} " for digit, word in enumerate(_DIGITS.split())}}.items():
        text = text.replace(sign, word)
    words = re.findall(r"[A-Za-z]+", text)
    joined = "".join(word[0].upper() + word[1:] for word in words)
    lossless = literal in SCALINGS or re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*", literal)
    return joined if lossless else joined + fingerprint(literal)


def fingerprint(text: str) -> str:
    """Return five letters that follow from a text."""
    place, word = int(hashlib.sha256(text.encode()).hexdigest(), 16), ""
    for _ in range(5):
        place, letter = divmod(place, 26)
        word += chr(ord("a") + letter)
    return word.capitalize()
