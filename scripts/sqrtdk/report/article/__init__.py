"""The article around the figures: five sentences, the design of the study, questions people ask, what to use when."""
