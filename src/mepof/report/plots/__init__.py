"""Where things stand in the drawings of the page; its templates draw them.

Horizontal positions are percent of a drawing's width and vertical ones pixels, so that a drawing
fills a phone as well as a page while its text keeps its size. Nothing here knows of colours.
"""
