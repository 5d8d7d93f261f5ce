"""The article: cards and chapters, questions people ask, what to use when, the design of the study."""
