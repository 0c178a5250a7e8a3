// Waits with a shorter limit that a program makes without a stop: a site that was rewritten comes here in place of its system call.
// The code is at a fixed address of each program; the data at its end is filled in before. Registers are as at a system call: all but
// rax, rcx and r11 are kept. No stack is used, since a goroutine's has no room. gs is the thread's place, with 16 frames of 128 bytes, of
// which a handler of signals that waits itself takes the next. Behind the frames:
//   2048 how far frames are taken, 2056 whether the place is this thread's alone, 2064 its address, 2072 waits since a stop, 2080 those of
//   them that became too short
// A frame:
//   0 the limit, 16 the same again or what is left, 32 where the program goes on, 40 rax, 48 rdx, 56 r10, 64 r8, 72 r9, 80 rdi, 88 rsi,
//   96 what follows (1: the rest is told, 2: likewise, if it was interrupted), 104 where that is told
    .balign 16
    .globl longhaul_clock_detour
    .globl longhaul_clock_detour_call
    .globl longhaul_clock_detour_done
    .globl longhaul_clock_detour_data
    .globl longhaul_clock_detour_end

// A thread without a place of its own stops at each wait, every other now and then, to be counted.
    .macro need_place
    cmp qword ptr gs:[2056], 0
    je 1b
    cmp qword ptr gs:[2072], 1023
    jae 1b
    .endm

    .macro find_frame
    mov r11d, dword ptr gs:[2048]
    and r11d, 0x780
    add r11, qword ptr gs:[2064]
    .endm

// In one instruction, so that a handler between two of them finds the next frame.
    .macro take_frame
    add dword ptr gs:[2048], 128
    find_frame
    mov [r11 + 40], rax
    mov rax, [rcx + 8]
    mov [r11 + 32], rax
    mov [r11 + 48], rdx
    mov [r11 + 56], r10
    mov [r11 + 64], r8
    mov [r11 + 72], r9
    mov [r11 + 80], rdi
    mov [r11 + 88], rsi
    mov qword ptr [r11 + 96], 0
    .endm

    .macro put_back
    mov rdx, [r11 + 48]
    mov r10, [r11 + 56]
    mov r8, [r11 + 64]
    mov r9, [r11 + 72]
    mov rdi, [r11 + 80]
    mov rsi, [r11 + 88]
    .endm

// Reads where a program says its limit, while all is as it was: what faults is made as it is.
    .macro look at
    mov r11, [\at]
    mov r11, [\at + 8]
    .endm

// rax: the nanoseconds that a program says; what the kernel refuses is left to it.
    .macro read_own at
    mov rax, [\at]
    mov rdx, [\at + 8]
    cmp rdx, 1000000000
    jae 90f
    cmp rax, [rip + 103f]
    jae 90f
    imul rax, rax, 1000000000
    add rax, rdx
    .endm

// rdi: what there is to know of the clocks now: the speed with 32 bits behind the point, 12 origins, what was shown then, the speed of before
    .macro find_set
    movzx edi, byte ptr [{which}]
    shl edi, 8
    add edi, {sets}
    .endm

// rax: nanoseconds of the program, then real ones, rounded up. rdi has the clocks; rsi is lost.
    .macro divide
    mov rsi, [rdi]
    mov rdx, rax
    shr rdx, 32
    shl rax, 32
    add rax, rsi
    adc rdx, 0
    sub rax, 1
    sbb rdx, 0
    div rsi
    .endm

    .macro write_limit
    xor edx, edx
    mov r9d, 1000000000
    div r9
    mov [r11], rax
    mov [r11 + 8], rdx
    mov [r11 + 16], rax
    mov [r11 + 24], rdx
    .endm

// rax: nanoseconds from now on
    .macro shorten
    mov r9, rax
    find_set
    divide
    inc qword ptr gs:[2072]
    cmp rax, 60000
    jae 2f
    cmp r9, 60000
    jb 2f
    inc qword ptr gs:[2080]
2:  write_limit
    .endm

// rax: an instant; r8: the number of its clock. Before the origin it is counted back at the speed of before, and to the kernel's epoch at most.
    .macro move_instant
    find_set
    sub rax, [rdi + r8 * 8 + 104]
    jae 2f
    neg rax
    mov rdx, rax
    shr rdx, 32
    shl rax, 32
    div qword ptr [rdi + 200]
    mov rsi, rax
    mov rax, [rdi + r8 * 8 + 8]
    sub rax, rsi
    jae 3f
    xor eax, eax
    jmp 3f
2:  divide
    add rax, [rdi + r8 * 8 + 8]
3:  write_limit
    .endm

// rcx: of this site, where its call is made as it is, and where the program goes on
longhaul_clock_detour:
    cmp eax, 202
    je 10f
    cmp eax, 281
    je 20f
    cmp eax, 232
    je 20f
    cmp eax, 35
    je 30f
    cmp eax, 230
    je 40f
    cmp eax, 7
    je 50f
    cmp eax, 271
    je 60f
    cmp eax, 441
    je 70f
1:  jmp qword ptr [rcx]

// futex(rdi, esi: operation, edx, r10: limit): FUTEX_WAIT, and FUTEX_WAIT_BITSET until an instant
10: test r10, r10
    je 1b
    mov r11d, esi
    and r11d, 127
    je 11f
    cmp r11d, 9
    jne 1b
11: look r10
    need_place
    take_frame
    read_own r10
    test dword ptr [r11 + 88], 127
    je 13f
    xor r8d, r8d
    test dword ptr [r11 + 88], 256
    jne 12f
    inc r8d
12: move_instant
    jmp 14f
13: shorten
14: put_back
    mov r10, r11
    mov eax, 202
    jmp 80f

// epoll_wait and epoll_pwait(edi, rsi, edx, r10d: milliseconds, r8: mask) become epoll_pwait2, if there is one
20: test r10d, r10d
    jle 1b
    cmp qword ptr [rip + 102f], 0
    je 1b
    need_place
    take_frame
    mov eax, r10d
    imul rax, rax, 1000000
    shorten
    put_back
    mov r10, r11
    cmp dword ptr [r11 + 40], 281
    je 21f
    xor r8d, r8d
    xor r9d, r9d
21: mov eax, 441
    jmp 80f

// nanosleep(rdi: limit, rsi: rest)
30: look rdi
    need_place
    take_frame
    read_own rdi
    shorten
    put_back
    mov rdi, r11
    mov eax, 35
    test rsi, rsi
    je 80f
    mov qword ptr [r11 + 96], 2
    mov [r11 + 104], rsi
    lea rsi, [r11 + 16]
    jmp 80f

// clock_nanosleep(edi: clock, esi: flags, rdx: limit, r10: rest), by the wall clock or the monotonic one
40: cmp edi, 1
    ja 1b
    look rdx
    need_place
    take_frame
    read_own rdx
    test dword ptr [r11 + 88], 1
    je 41f
    mov r8d, dword ptr [r11 + 80]
    move_instant
    put_back
    jmp 42f
41: shorten
    put_back
    test r10, r10
    je 42f
    mov qword ptr [r11 + 96], 2
    mov [r11 + 104], r10
    lea r10, [r11 + 16]
42: mov rdx, r11
    mov eax, 230
    jmp 80f

// poll(rdi, esi, edx: milliseconds) becomes ppoll
50: test edx, edx
    jle 1b
    need_place
    take_frame
    mov eax, edx
    imul rax, rax, 1000000
    shorten
    put_back
    mov rdx, r11
    xor r10d, r10d
    xor r8d, r8d
    mov eax, 271
    jmp 80f

// ppoll(rdi, esi, rdx: limit, r10: mask)
60: test rdx, rdx
    je 1b
    look rdx
    need_place
    take_frame
    read_own rdx
    shorten
    put_back
    mov qword ptr [r11 + 96], 1
    mov [r11 + 104], rdx
    mov rdx, r11
    mov eax, 271
    jmp 80f

// epoll_pwait2(edi, rsi, edx, r10: limit, r8: mask)
70: test r10, r10
    je 1b
    look r10
    need_place
    take_frame
    read_own r10
    shorten
    put_back
    mov r10, r11
    mov eax, 441

// The filter knows this one instruction. What the kernel makes again after a signal is made again here.
80:
longhaul_clock_detour_call:
    syscall
    find_frame
    mov [r11 + 40], rax
    mov rcx, [r11 + 96]
    test ecx, ecx
    je 83f
    cmp ecx, 2
    je 81f
    mov rax, [r11]
    mov rdx, [r11 + 8]
    cmp rax, [r11 + 16]
    jne 82f
    cmp rdx, [r11 + 24]
    je 83f
    jmp 82f
81: cmp rax, -4
    jne 83f
    mov rax, [r11 + 16]
    mov rdx, [r11 + 24]
82: imul rax, rax, 1000000000
    add rax, rdx
    find_set
    mul qword ptr [rdi]
    shrd rax, rdx, 32
    xor edx, edx
    mov r9d, 1000000000
    div r9
    mov rcx, [r11 + 104]
    mov [rcx], rax
    mov [rcx + 8], rdx
83:
longhaul_clock_detour_done:
    find_frame
    put_back
    mov rax, [r11 + 40]
    mov rcx, [r11 + 32]
    sub dword ptr gs:[2048], 128
    jmp rcx

90: put_back
    mov rax, [r11 + 40]
    sub dword ptr gs:[2048], 128
    jmp qword ptr [rcx]

    .balign 8
longhaul_clock_detour_data:
// Whether there is epoll_pwait2.
102: .quad 0
// From so many seconds on a length is the tracer's business.
103: .quad 4294967296
longhaul_clock_detour_end:
