; RUN: opt -S -passes=move-auto-init %s
; The variable is used on one path only, and its address escapes there. Its initialisation can always
; be moved to that path, because nothing before can have its address.

declare void @use(ptr)

; Moved: an argument cannot point to the variable.
define void @load_by_argument(ptr %context) {
  %v = alloca [192 x i8], align 8
  call void @llvm.memset.p0.i64(ptr align 8 %v, i8 0, i64 192, i1 false), !annotation !0
  %first = load ptr, ptr %context, align 8
  %empty = icmp eq ptr %first, %context
  br i1 %empty, label %end, label %some
some:
  call void @use(ptr %v)
  br label %end
end:
  ret void
}

; Not moved: a loaded pointer might be the variable's address, which has not escaped yet.
define void @load_by_loaded_pointer(ptr %file) {
  %v = alloca [192 x i8], align 8
  call void @llvm.memset.p0.i64(ptr align 8 %v, i8 0, i64 192, i1 false), !annotation !0
  %context = load ptr, ptr %file, align 8
  %first = load ptr, ptr %context, align 8
  %empty = icmp eq ptr %first, %context
  br i1 %empty, label %end, label %some
some:
  call void @use(ptr %v)
  br label %end
end:
  ret void
}

; Not moved: likewise, for a barrier.
define void @barrier(i1 %empty) {
  %v = alloca [192 x i8], align 8
  call void @llvm.memset.p0.i64(ptr align 8 %v, i8 0, i64 192, i1 false), !annotation !0
  call void asm sideeffect "", "~{memory}"()
  br i1 %empty, label %end, label %some
some:
  call void @use(ptr %v)
  br label %end
end:
  ret void
}

!0 = !{!"auto-init"}
