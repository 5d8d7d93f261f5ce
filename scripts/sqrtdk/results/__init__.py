"""The files of a run: what each and each of its columns means (`dictionary`), and how they are read and written.

It knows no other room.
"""
