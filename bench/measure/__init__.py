"""What the benchmarks measure with."""
