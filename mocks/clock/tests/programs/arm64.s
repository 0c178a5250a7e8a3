// Calls the time functions of `page.bin` as a program of arm64 does and writes what they say, in words: for each clock from 0 to 15 the result, seconds and nanoseconds;
// seconds and microseconds; seconds, as told and as written; the result, seconds and nanoseconds of a resolution; and at last how many registers were not kept.
    .globl _start
    .text
// In the place of the kernel's functions, which keep as little as they may.
    .balign 64
kernel_gettime:
    cmp w0, #15
    b.eq 1f
    add x2, x0, #1000
    movz x3, #0xc9ff
    movk x3, #0x3b9a, lsl #16
    stp x2, x3, [x1]
    mov x4, #-1
    mov x9, #-1
    mov x17, #-1
    mov w0, wzr
    ret
1:  mov x0, #-22
    ret
    .org 64
kernel_getres:
    mov x3, #7
    stp xzr, x3, [x1]
    mov x2, #-1
    mov w0, wzr
    ret
    .org 128
page:
    .incbin "page.bin"

    .balign 16
_start:
    adr x19, written
    mov x28, #28
    mov w20, wzr
2:  mov w0, w20
    add x1, x19, #8
    bl page
    str x0, [x19], #24
    add w20, w20, #1
    cmp w20, #16
    b.ne 2b
    mov x0, x19
    mov x1, xzr
    adr x16, page
    add x16, x16, #gettimeofday
    blr x16
    add x19, x19, #16
    add x0, x19, #8
    adr x16, page
    add x16, x16, #time
    blr x16
    str x0, [x19], #16
    mov w0, #1
    add x1, x19, #8
    adr x16, page
    add x16, x16, #getres
    blr x16
    str x0, [x19], #24
    sub x0, x28, #28
    str x0, [x19], #8
    adr x1, written
    sub x2, x19, x1
    mov x0, #1
    mov x8, #64
    svc #0
    mov x0, xzr
    mov x8, #93
    svc #0

    .balign 16
written:
    .fill 64, 8, 0
