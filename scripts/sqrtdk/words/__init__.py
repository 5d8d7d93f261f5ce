"""Values and formulas in words: spelled numbers, formulas, sentences, the texts of a language.

It knows nothing of what they say.
"""
