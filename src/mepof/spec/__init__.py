"""One frozen model of the parameters and inputs for each kind of step.

The G4 compiler builds these models, and the body of the same name in ``steps`` parses them.
"""
