// The time functions of the kernel's page, in the program's own time. Position independent; the data at the end is filled in before
// the code is written into a program. Registers that a caller keeps are kept, x28 among them, where Go has its goroutine.
    .balign 16
    .globl longhaul_clock_page
    .globl longhaul_clock_page_gettimeofday
    .globl longhaul_clock_page_time
    .globl longhaul_clock_page_getres
    .globl longhaul_clock_page_data
    .globl longhaul_clock_page_end

// clock_gettime(w0: clock, x1: time)
longhaul_clock_page:
30: stp x29, x30, [sp, #-32]!
    mov x29, sp
    stp x0, x1, [sp, #16]
    bl 20f
    ldp x2, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    cbnz w0, 9f
    cmp w2, #11
    b.hi 9f
    adr x3, 45f
    ldr x4, [x3, w2, uxtw #3]
    cbz x4, 9f
    // shown + (seconds * 1e9 + nanoseconds - origin) * speed
    ldp x5, x6, [x1]
    movz x7, #0xca00
    movk x7, #0x3b9a, lsl #16
    madd x5, x5, x7, x6
    sub x5, x5, x4
    ldr x6, 44f
    mul x4, x5, x6
    smulh x5, x5, x6
    extr x5, x5, x4, #32
    adr x3, 46f
    ldr x4, [x3, w2, uxtw #3]
    add x5, x5, x4
    udiv x6, x5, x7
    msub x5, x6, x7, x5
    stp x6, x5, [x1]
9:  ret
// The kernel's own: its function, or the system call, with a mark that the filter lets pass.
20: ldr x9, 42f
    cbnz x9, 21f
    adr x9, 30b
    ldr x10, 40f
    add x9, x9, x10
    br x9
21: mov x5, x9
    mov x8, #113
    svc #0
    mov x5, xzr
    ret

// gettimeofday(x0: time, x1: zone)
longhaul_clock_page_gettimeofday:
    cbz x1, 1f
    str xzr, [x1]
1:  cbz x0, 2f
    stp x29, x30, [sp, #-48]!
    mov x29, sp
    str x0, [sp, #16]
    add x1, sp, #32
    mov w0, wzr
    bl 30b
    ldr x0, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x29, x30, [sp], #48
    mov x4, #1000
    udiv x3, x3, x4
    stp x2, x3, [x0]
2:  mov w0, wzr
    ret

// time(x0: seconds); the page of arm64 has none.
longhaul_clock_page_time:
    stp x29, x30, [sp, #-48]!
    mov x29, sp
    str x0, [sp, #16]
    add x1, sp, #32
    mov w0, wzr
    bl 30b
    ldr x1, [sp, #16]
    ldr x0, [sp, #32]
    ldp x29, x30, [sp], #48
    cbz x1, 3f
    str x0, [x1]
3:  ret

// clock_getres(w0: clock, x1: time)
longhaul_clock_page_getres:
    stp x29, x30, [sp, #-32]!
    mov x29, sp
    stp x0, x1, [sp, #16]
    bl 22f
    ldp x2, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    cbnz w0, 8f
    cbz x1, 8f
    cmp w2, #11
    b.hi 8f
    adr x3, 45f
    ldr x4, [x3, w2, uxtw #3]
    cbz x4, 8f
    ldp x5, x6, [x1]
    movz x7, #0xca00
    movk x7, #0x3b9a, lsl #16
    madd x5, x5, x7, x6
    ldr x6, 44f
    mul x4, x5, x6
    umulh x5, x5, x6
    extr x5, x5, x4, #32
    udiv x6, x5, x7
    msub x5, x6, x7, x5
    stp x6, x5, [x1]
8:  ret
22: ldr x9, 42f
    cbnz x9, 23f
    adr x9, 30b
    ldr x10, 41f
    add x9, x9, x10
    br x9
23: mov x5, x9
    mov x8, #114
    svc #0
    mov x5, xzr
    ret

    .balign 8
longhaul_clock_page_data:
// How far the kernel's clock_gettime and clock_getres are.
40: .quad 0
41: .quad 0
// The mark; 0 where the kernel's functions are called.
42: .quad 0
// Programs have no room here for what becomes of their clocks later.
43: .quad 0
// The speed, with 32 bits behind the point; the origins of the clocks, 0 for one that stays as it is; what was shown then; the speed of before,
// which is the same where nothing is changed later.
44: .quad 0
45: .fill 12, 8, 0
46: .fill 12, 8, 0
47: .quad 0
longhaul_clock_page_end:
