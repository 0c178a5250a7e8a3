// The time functions of the kernel's page, in the program's own time. Position independent; the data at the end is filled in before
// the code is written into a program. Registers that a caller keeps are kept.
    .balign 16
    .globl longhaul_clock_page
    .globl longhaul_clock_page_gettimeofday
    .globl longhaul_clock_page_time
    .globl longhaul_clock_page_getres
    .globl longhaul_clock_page_data
    .globl longhaul_clock_page_end

// rdx: what there is to know of the clocks; the newest of it, where the program has room for that. One byte says which, so that it changes at
// once. A time was read before: what is newer goes on from there or later.
    .macro find_clocks
    lea rdx, [rip + 44f]
    cmp qword ptr [rip + 43f], 0
    je 7f
    movzx edx, byte ptr [{which}]
    shl edx, 8
    add edx, {sets}
7:
    .endm

// clock_gettime(edi: clock, rsi: time)
longhaul_clock_page:
    push rdi
    push rsi
    sub rsp, 8
    call 20f
    add rsp, 8
    pop rsi
    pop rdi
    test eax, eax
    jne 9f
    cmp edi, 11
    ja 9f
    mov edi, edi
    find_clocks
    mov r8, [rdx + rdi * 8 + 8]
    test r8, r8
    je 9f
    // shown + (seconds * 1e9 + nanoseconds - origin) * speed, of before where that is below 0
    mov rcx, rdx
    imul rax, qword ptr [rsi], 1000000000
    add rax, [rsi + 8]
    sub rax, r8
    lea r8, [rcx + 200]
    cmovns r8, rcx
    imul qword ptr [r8]
    shrd rax, rdx, 32
    add rax, [rcx + rdi * 8 + 104]
    xor edx, edx
    mov ecx, 1000000000
    div rcx
    mov [rsi], rax
    mov [rsi + 8], rdx
    xor eax, eax
9:  ret
// The kernel's own: its function, or the system call, with a mark that the filter lets pass.
20: cmp qword ptr [rip + 42f], 0
    jne 21f
    lea rax, [rip + longhaul_clock_page]
    add rax, [rip + 40f]
    jmp rax
21: mov r9, [rip + 42f]
    mov eax, 228
    syscall
    xor r9d, r9d
    ret

// gettimeofday(rdi: time, rsi: zone)
longhaul_clock_page_gettimeofday:
    test rsi, rsi
    je 1f
    mov qword ptr [rsi], 0
1:  test rdi, rdi
    je 2f
    push rdi
    sub rsp, 16
    mov rsi, rsp
    xor edi, edi
    call longhaul_clock_page
    mov r8, [rsp]
    mov rax, [rsp + 8]
    add rsp, 16
    pop rdi
    xor edx, edx
    mov ecx, 1000
    div ecx
    mov [rdi], r8
    mov [rdi + 8], rax
2:  xor eax, eax
    ret

// time(rdi: seconds)
longhaul_clock_page_time:
    push rdi
    sub rsp, 16
    mov rsi, rsp
    xor edi, edi
    call longhaul_clock_page
    mov rax, [rsp]
    add rsp, 16
    pop rdi
    test rdi, rdi
    je 3f
    mov [rdi], rax
3:  ret

// clock_getres(edi: clock, rsi: time)
longhaul_clock_page_getres:
    push rdi
    push rsi
    sub rsp, 8
    call 22f
    add rsp, 8
    pop rsi
    pop rdi
    test eax, eax
    jne 8f
    test rsi, rsi
    je 8f
    cmp edi, 11
    ja 8f
    mov edi, edi
    find_clocks
    cmp qword ptr [rdx + rdi * 8 + 8], 0
    je 8f
    mov rcx, rdx
    imul rax, qword ptr [rsi], 1000000000
    add rax, [rsi + 8]
    mul qword ptr [rcx]
    shrd rax, rdx, 32
    xor edx, edx
    mov ecx, 1000000000
    div rcx
    mov [rsi], rax
    mov [rsi + 8], rdx
    xor eax, eax
8:  ret
22: cmp qword ptr [rip + 42f], 0
    jne 23f
    lea rax, [rip + longhaul_clock_page]
    add rax, [rip + 41f]
    jmp rax
23: mov r9, [rip + 42f]
    mov eax, 229
    syscall
    xor r9d, r9d
    ret

    .balign 8
longhaul_clock_page_data:
// How far the kernel's clock_gettime and clock_getres are.
40: .quad 0
41: .quad 0
// The mark; 0 where the kernel's functions are called.
42: .quad 0
// Whether the program has room for what becomes of its clocks later.
43: .quad 0
// The speed, with 32 bits behind the point; the origins of the clocks, 0 for one that stays as it is; what was shown then; the speed of before.
44: .fill 26, 8, 0
longhaul_clock_page_end:
