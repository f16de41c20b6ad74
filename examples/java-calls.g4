# What calls from Java through JNI cost on a kernel, over Unix sockets and binder, and how much of
# that is marshalling: `mepof run examples/java-calls.g4` (docs/suites/jni.md).

set config suites.
set seed 1.
set repetitions 3.

build debian:linux-source-6.12.
eval plain jni.
