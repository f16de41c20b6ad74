#!/bin/bash
# Profile-guided optimisation of a kernel as a person does it without mepof, from documentation:
#
#   Documentation/dev-tools/gcov.rst of the kernel: CONFIG_GCOV_KERNEL, gcov's files in debugfs, and
#     its Appendix B for the way to copy them; there is no other profile of a whole kernel by
#     instrumentation in mainline
#   "Program Instrumentation Options" and "Optimize Options" of GCC's manual: -fprofile-arcs, which
#     CONFIG_GCOV_KERNEL adds, writes auxname.gcda, and -fprofile-use reads it; "gcov-tool"
#
# usage: by-hand.sh SOURCE.tar.xz CONFIG KBENCH LIST DIRECTORY
#
# SOURCE.tar.xz has one directory, CONFIG is the .config that the kernel has, KBENCH the program
# that trains and measures, LIST what of it trains, in the order in which a person types it.
# DIRECTORY must not exist; it gets all that is built, and `record`, one line for each event:
#
#   seconds STAGE N             how long a stage took
#   typed STAGE COMMAND         a command that a person types and waits for
#   written STAGE N FILE        so many lines that a person writes or changes in a file
#   measured IMAGE CASE NS N    nanoseconds of the guest's clock for so many operations
#
# A person's own time, for reading, thinking, typing and mistakes, is in none of these.
set -euo pipefail

[[ $# -eq 5 ]] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
for file in "$1" "$2" "$3" "$4"; do
    [[ -f $file ]] || { echo "by-hand.sh: $file is not a file" >&2; exit 2; }
done
[[ ! -e $5 ]] || { echo "by-hand.sh: $5 exists: name a new directory" >&2; exit 2; }
SOURCE=$(realpath "$1") CONFIG=$(realpath "$2") KBENCH=$(realpath "$3") LIST=$(realpath "$4")
mkdir -p "$5"
cd "$5"
HERE=$(pwd -P)
RECORD=$HERE/record
export HERE SOURCE CONFIG KBENCH

current=''
stage() { # NAME, or nothing at the end: the time until the next one is this stage's
    local now=${EPOCHREALTIME/[.,]/}
    if [[ -n $current ]]; then
        local ms=$(((now - began) / 1000))
        printf 'seconds %s %d.%03d\n' "$current" $((ms / 1000)) $((ms % 1000)) >>"$RECORD"
    fi
    current=${1:-} began=$now
}

typed() { # a command line
    printf 'typed %s %s\n' "$current" "${1//$'\n'/}" >>"$RECORD"
    bash -euo pipefail -c "$1" >>log 2>&1 || {
        tail -n 20 log >&2
        echo "by-hand.sh: this failed: $1" >&2
        exit 1
    }
}

written() { # FILE: adds the lines of standard input
    local text
    text=$(cat)
    printf '%s\n' "$text" >>"$1"
    printf 'written %s %d %s\n' "$current" "$(wc -l <<<"$text")" "$(basename "$1")" >>"$RECORD"
}

# What is typed at the guest's console comes from a file in its initramfs; what begins with @ begins
# a stage.
boot() { # KERNEL, and the lines on standard input
    local lines line
    lines=$(cat)
    while IFS= read -r line; do
        [[ $line == @* ]] || printf 'typed %s %s\n' "${typing:-$current}" "$line" >>"$RECORD"
        [[ $line != @* ]] || typing=${line#@}
    done <<<"$lines"
    unset typing
    printf '%s\n' "$lines" >root/console
    typed "cd root && find . | cpio -o -H newc -R 0:0 >../root.cpio"
    local command="qemu-system-x86_64 -M microvm,acpi=off,pit=on,pic=on,rtc=on -cpu max -m 512 \
-icount shift=0,sleep=off -nodefaults -no-user-config -no-reboot -display none -serial stdio \
-kernel $1 -initrd root.cpio -append 'console=ttyS0 reboot=t panic=-1 noapictimer lpj=4000000' \
-device virtio-serial-device -chardev file,id=out,path=out -device virtserialport,chardev=out"
    printf 'typed %s %s\n' "$current" "$command" >>"$RECORD"
    : >console.log
    while IFS= read -r line; do
        line=${line%$'\r'}
        printf '%s\n' "$line" >>console.log
        [[ $line != @* ]] || stage "${line#@}"
    done < <(eval "timeout 3600 $command" 2>&1 </dev/null)
    grep -q '^console: done$' console.log || {
        tail -n 20 console.log >&2
        echo "by-hand.sh: the guest did not come to the end of its console's commands" >&2
        exit 1
    }
}

stage preparation
typed 'tar xf "$SOURCE" && mv linux*/ linux'
typed 'mkdir -p root/{bin,dev,proc,sys,tmp} && cp "$(command -v busybox)" root/bin'
typed 'cp "$KBENCH" root/bin/kbench'
written root/init <<'INIT'
#!/bin/busybox sh
/bin/busybox mount -t proc none /proc
/bin/busybox --install -s /bin
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t debugfs none /sys/kernel/debug
mount -t tmpfs none /tmp
cd /tmp
INIT
typed 'chmod +x root/init'
# In place of a person: the shell at the end of a person's init is not in the count.
cat >>root/init <<'INIT'
while read -r line; do
    case $line in
    @*) echo "$line" ;;
    *) eval "$line" || { echo "console: failed: $line"; break; } ;;
    esac
done </console && [ -z "$line" ] && echo 'console: done'
sync
reboot -f
INIT

stage plain
typed 'mkdir plain && cp "$CONFIG" plain/.config'
typed 'make -C linux CC=gcc-12 O=$HERE/plain olddefconfig'
typed 'make -C linux CC=gcc-12 O=$HERE/plain -j"$(nproc)" bzImage'

stage instrumentation
typed 'mkdir build && cp "$CONFIG" build/.config'
written build/.config <<'LINES'
CONFIG_DEBUG_FS=y
CONFIG_GCOV_KERNEL=y
CONFIG_GCOV_PROFILE_ALL=y
LINES
typed 'make -C linux CC=gcc-12 O=$HERE/build olddefconfig'
grep -q '^CONFIG_GCOV_PROFILE_ALL=y' build/.config || {
    echo "by-hand.sh: CONFIG_GCOV_PROFILE_ALL does not take in $CONFIG" >&2
    exit 1
}

stage instrumented
typed 'make -C linux CC=gcc-12 O=$HERE/build -j"$(nproc)" bzImage'
typed 'cp build/arch/x86/boot/bzImage instrumented'

stage training
written root/bin/gather <<'GATHER'
#!/bin/sh -e
GCDA=/sys/kernel/debug/gcov
find $GCDA -type d -exec mkdir -p /tmp/gcov/{} \;
find $GCDA -name '*.gcda' -exec sh -c 'cat <$0 >/tmp/gcov/$0' {} \;
tar cf "$1" -C /tmp/gcov sys
GATHER
typed 'chmod +x root/bin/gather'
training() {
    echo 'echo 0 >/sys/kernel/debug/gcov/reset'
    sed -e 's/[[:space:]]*#.*//' -e '/^[[:space:]]*$/d' "$LIST" |
        sed -e 's/^mix-/kbench mix /;t' -e 's/^/kbench run /'
    echo '@transfer'
    echo 'gather /dev/vport0p1'
}
boot instrumented < <(training)

typed 'mkdir counts && tar xf out -C counts'
# The kernel's gcov writes no summary of a run, without which GCC leaves counts unused and does not
# say so. gcov-tool writes one, and so does this in place of a copy.
typed 'gcov-tool-12 rewrite -o build "counts/sys/kernel/debug/gcov$HERE/build"'

# Without GCOV_KERNEL, the vDSO is another one, and lines of the file that is generated of it move:
# GCC calls that an error, and its manual names the option that makes it a warning again.
stage recompilation
typed 'linux/scripts/config --file build/.config -d GCOV_KERNEL'
typed 'make -C linux CC=gcc-12 O=$HERE/build olddefconfig'
typed 'make -C linux CC=gcc-12 O=$HERE/build -j"$(nproc)" \
    KCFLAGS="-fprofile-use -Wno-missing-profile -Wno-error=coverage-mismatch" bzImage'

stage measurement
for image in plain build; do
    cases=(syscall overhead pipe128 pipe512 proc file512 file1024 file8k)
    boot $image/arch/x86/boot/bzImage < <(printf 'kbench run %s\n' "${cases[@]}")
    pattern='s/^case=\([^ ]*\) .* operations=\([0-9]*\) .*elapsed_ns=\([0-9]*\) check=ok$'
    sed -n "$pattern/measured $image \\1 \\3 \\2/p" console.log >>"$RECORD"
done
stage
