"""The layout of the page's drawings; the templates draw them.

Horizontal positions are percent of a drawing's width and vertical ones are pixels, so that a
drawing fits any width while its text keeps its size. Nothing here knows about colours.
"""
