"""The files of a run: what each is, and how it is read and written.

It knows no other room.
"""
