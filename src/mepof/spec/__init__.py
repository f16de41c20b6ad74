"""What each kind of step is asked to do: one frozen model of its parameters and inputs.

The compiler of G4 builds these models, and the body of the same name under ``steps`` parses them.
"""
