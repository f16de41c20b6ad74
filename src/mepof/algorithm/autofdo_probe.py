"""``autofdo-probe``: sample profiles by pseudo probes instead of debug lines.

Probes mark the basic blocks of every function before anything moves them, and a hash of its
control flow identifies a function that has changed. They cost a little code motion in the kernel
that is profiled, and a section of the file.
"""

from __future__ import annotations

from mepof.algorithm.autofdo import AutoFdo

ALGORITHM = AutoFdo("kernel.probes", probes=True)
