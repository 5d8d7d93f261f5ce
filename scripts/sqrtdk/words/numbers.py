"""Spelled numbers: every value rounded by its own error, the same in captions, texts, tables and languages."""

import math
from collections.abc import Callable, Iterable
from decimal import ROUND_HALF_EVEN, Decimal

_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_MINUS = "−"
_MOST_DIGITS = 9
NOT_AVAILABLE = "n/a"


def _missing(value: float | None) -> bool:
    return value is None or math.isnan(value)


def _exponent(value: float | Decimal) -> int:
    """Return the power of ten of the leading digit."""
    return Decimal(repr(float(value))).adjusted()


def _round(value: float, place: int) -> Decimal:
    """Round to the decimal place 10**place, half to even, exactly as the shortest spelling of the float says.

    What rounds to zero has no sign.
    """
    found = Decimal(repr(float(value))).quantize(Decimal(1).scaleb(place), rounding=ROUND_HALF_EVEN)
    return found or found.copy_abs()


def _error_place(se: float) -> int:
    """Return the last decimal place to keep: one digit of the error, two where the first is 1."""
    two = _round(se, _exponent(se) - 1)
    digits = str(two.as_tuple().digits[0]) + str((two.as_tuple().digits + (0,))[1])
    return two.adjusted() - (1 if digits[0] == "1" and digits[1] != "0" else 0)


def power_of_ten(exponent: int) -> str:
    """Spell a power of ten with superscript digits: 10⁻³."""
    return "10" + str(exponent).translate(_SUPERSCRIPT)


def _signed(text: str) -> str:
    return text.replace("-", _MINUS)


def _scientific(value: float, place: int | None = None) -> bool:
    """Say whether plain decimals would be hard to read: many leading zeros, or digits beyond the known ones."""
    if place is not None and place > 0:
        return True
    return value != 0 and not -4 <= _exponent(value) < 7


def significant(value: float, digits: int = 3) -> str:
    """Spell a number without an error to some significant digits: 4096, 0.0123, 1.23 × 10⁻⁷.

    Whole numbers up to 10**7 are spelled in full.
    """
    if _missing(value):
        return NOT_AVAILABLE
    if math.isinf(value):
        return "∞" if value > 0 else f"{_MINUS}∞"
    if value == 0:
        return "0"
    if float(value).is_integer() and abs(value) < 1e7:
        return _signed(str(int(value)))
    place = _exponent(value) - digits + 1
    rounded = _round(value, place)
    exponent = rounded.adjusted()
    if _scientific(float(rounded)) or exponent >= max(digits, 4):
        return f"{_signed(f'{_round(value / 10.0**exponent, 1 - digits):f}')} × {power_of_ten(exponent)}"
    return _signed(f"{_round(float(rounded), min(exponent - digits + 1, 0)):f}")


def _with_error(value: float, se: float, spell: Callable[[Decimal, Decimal, int, str], str]) -> str:
    place = _error_place(se)
    top = max(_exponent(_round(value, place)) if _round(value, place) else place, _error_exponent(se, place))
    if _scientific(10.0**top, place):
        value, se, place = value / 10.0**top, se / 10.0**top, place - top
        return spell(_round(value, place), _round(se, place), place, power_of_ten(top))
    return spell(_round(value, place), _round(se, place), place, "")


def _error_exponent(se: float, place: int) -> int:
    return _round(se, place).adjusted()


def _parentheses(value: Decimal, error: Decimal, place: int, power: str) -> str:
    # An error of 1 or more beside decimals keeps its point: 12.3(1.4), not 12.3(14).
    bracket = f"{error:f}" if error >= 1 and place < 0 else str(int(error.scaleb(-place)))
    return _signed(f"{value:f}({bracket})") + (f" × {power}" if power else "")


def _plus_minus(value: Decimal, error: Decimal, place: int, power: str) -> str:
    text = _signed(f"{value:f} ± {error:f}")
    return f"({text}) × {power}" if power else text


def _spelled(value: float, se: float, spell: Callable[[Decimal, Decimal, int, str], str]) -> str:
    if _missing(value) or math.isinf(value):
        return significant(value)
    if _missing(se) or se <= 0 or math.isinf(se):
        return significant(value, 4)
    if value != 0 and _exponent(value) - _error_place(se) > _MOST_DIGITS:
        return significant(value, _MOST_DIGITS)
    return _with_error(value, se, spell)


def with_error(value: float, se: float) -> str:
    """Spell an estimate rounded by its standard error: 0.9999(1), 1.234(5) × 10⁸.

    The bracket is the standard error in units of the last digits. One digit of the error is kept, two where it begins
    with 1: rounding 14 to 10 would lose a third of it.
    Without a usable error (missing, zero, infinite) the value is spelled to four significant digits, and with an error
    beyond the ninth digit to nine.
    """
    return _spelled(value, se, _parentheses)


def plus_minus(value: float, se: float) -> str:
    """Spell an estimate as `value ± error`, rounded as in `with_error`."""
    return _spelled(value, se, _plus_minus)


def rounded(value: float, error: float) -> str:
    """Spell a value to the place of its error without the error: 1.96 for an error of 0.04."""
    return _spelled(
        value, error, lambda number, _, place, power: _signed(f"{number:f}") + (f" × {power}" if power else "")
    )


def interval(low: float, high: float) -> str:
    """Spell an interval as `[low, high]`, to two digits of its width."""
    if _missing(low) or _missing(high) or math.isinf(low) or math.isinf(high) or high <= low:
        return rough_interval(low, high, 4)
    place = _exponent(high - low) - 1
    top = max(_exponent(low) if low else place, _exponent(high) if high else place)
    if _scientific(10.0**top, place):
        return rough_interval(low, high, max(top - place + 1, 1))
    return _signed(f"[{_round(low, place):f}, {_round(high, place):f}]")


def rough_interval(low: float, high: float, digits: int = 2) -> str:
    """Spell an interval as `[low, high]`, both to some significant digits; an end that is infinite is open."""
    ends = ("(" if math.isinf(low) else "[", ")" if math.isinf(high) else "]")
    return f"{ends[0]}{significant(low, digits)}, {significant(high, digits)}{ends[1]}"


def percent(share: float, digits: int = 1) -> str:
    """Spell a share of 1 as a percentage with fixed decimals: 95.0 %."""
    return NOT_AVAILABLE if _missing(share) else _signed(f"{_round(100 * share, -digits):f} %")


def share(value: float, digits: int = 2) -> str:
    """Spell a share of 1 as a percentage rounded for reading: 0.093 %, 60 %, 99.9 %."""
    return f"{significant(100 * value, max(digits, 3) if 0.99 <= value < 1 else digits)} %"


def apart(values: Iterable[float], spell: Callable[[float, int], str] = significant) -> list[str]:
    """Spell numbers that a sentence compares: to two digits, or to as many, up to five, as tell them apart."""
    values = list(values)
    spelled = [[spell(value, digits) for value in values] for digits in (2, 3, 4, 5)]
    return next((texts for texts in spelled if len(set(texts)) == len(set(values))), spelled[0])


def count(number: float) -> str:
    """Spell a count; from ten thousand on with thin spaces between thousands, from 10⁷ on rounded to two digits."""
    if _missing(number):
        return NOT_AVAILABLE
    if number >= 1e7:
        return significant(float(f"{number:.1e}"), 2)
    return f"{int(number):,}".replace(",", "\u202f") if number >= 1e4 else str(int(number))


def counted(number: int, one: str, many: str | None = None) -> str:
    """Spell a number with its noun: 1 cell, 2 cells."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"
