// detours KIND: waits that are made many times at one place in the program, so that all but the first need no stop; and what may go wrong
// with them. RATE is how fast its clock goes.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000LL
static int64_t now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
static void must(int is, const char *what, long n) { if (!is) { printf("%s: %ld (%s)\n", what, n, strerror(errno)); exit(1); } }
static struct timespec of(int64_t ns) { struct timespec t = {ns / 1000000000LL, ns % 1000000000LL}; return t; }
// Each by its own instruction, as in the C library.
static int sleeps(struct timespec *t, struct timespec *r) { return syscall(SYS_nanosleep, t, r); }
static int naps(struct timespec *t, struct timespec *r) { return nanosleep(t, r); }
static volatile sig_atomic_t hits; static sigjmp_buf out; static int deep;
static void waits(int s) { hits++; struct timespec t = of(200 * MS); int64_t b = now(); must(naps(&t, 0) == 0, "in a handler", hits); must(now() - b >= 200 * MS, "in a handler, ms", (now() - b) / MS);
  if (deep && hits < 5) { raise(SIGUSR1); } }
static void leaves(int s) { hits++; siglongjmp(out, 1); }
static void every(int64_t own) { struct itimerval v = {{own / 1000000000, own % 1000000000 / 1000}, {own / 1000000000, own % 1000000000 / 1000}}; setitimer(ITIMER_REAL, &v, 0); }
static void *words(void *n) { static int word; for (int i = 0; i < 3000; i++) { struct timespec t = of(10 * MS); must(syscall(SYS_futex, &word, 0, 0, &t, 0, 0) == -1 && errno == ETIMEDOUT, "futex", i); } return 0; }
static void warm(void) { for (int i = 0; i < 3; i++) { struct timespec t = of(MS), z = of(MS); naps(&t, &t); sleeps(&z, &z); ppoll(0, 0, &t, 0); poll(0, 0, 1); } }
static void *crowd(void *n) { struct timespec t = of(3000 * MS); int64_t b = now(); for (int i = 0; i < 3; i++) { naps(&t, 0); } must(now() - b >= 9000 * MS, "in a crowd, ms", (now() - b) / MS); return 0; }
static void *limits(void *n) { pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; pthread_cond_t c = PTHREAD_COND_INITIALIZER; int e = epoll_create1(0); struct epoll_event ev;
  for (int i = 0; i < 40; i++) { int64_t b = now(); struct timespec t; clock_gettime(CLOCK_REALTIME, &t); t = of(t.tv_sec * 1000000000LL + t.tv_nsec + 300 * MS);
    pthread_mutex_lock(&m); must(pthread_cond_timedwait(&c, &m, &t) == ETIMEDOUT, "condition", i); pthread_mutex_unlock(&m); must(now() - b >= 299 * MS, "condition, ms", (now() - b) / MS);
    b = now(); must(epoll_wait(e, &ev, 1, 300) == 0, "epoll", i); must(now() - b >= 300 * MS, "epoll, ms", (now() - b) / MS);
    b = now(); must(poll(0, 0, 300) == 0, "poll", i); must(now() - b >= 300 * MS, "poll, ms", (now() - b) / MS);
    struct timespec w = of(now() + 300 * MS); b = now(); must(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &w, 0) == 0, "until", i); must(now() - b >= 299 * MS, "until, ms", (now() - b) / MS); }
  close(e); return 0; }

int main(int n, char **v) {
  const char *k = n > 1 ? v[1] : ""; warm(); int64_t began = now();
  if (!strcmp(k, "many")) { for (int i = 0; i < 3000; i++) { struct timespec t = of(10 * MS); must(naps(&t, 0) == 0, "nap", i); } must(now() - began >= 30000 * MS, "ms", (now() - began) / MS); }
  // By the library's function for any call.
  else if (!strcmp(k, "words")) { words(0); must(now() - began >= 30000 * MS, "ms", (now() - began) / MS); }
  else if (!strcmp(k, "limits")) { pthread_t t[20]; for (int i = 0; i < 20; i++) pthread_create(&t[i], 0, limits, 0); for (int i = 0; i < 20; i++) pthread_join(t[i], 0); }
  // A handler that waits at the same place, in the middle of a wait, to the fifth depth; then the rest of the first one is told.
  else if (!strcmp(k, "nested")) { deep = 1; struct sigaction a = {.sa_handler = waits, .sa_flags = SA_NODEFER}; sigaction(SIGUSR1, &a, 0); pid_t me = getpid();
    if (!fork()) { struct timespec t = of(1000 * MS); naps(&t, 0); kill(me, SIGUSR1); _exit(0); }
    struct timespec t = of(60000 * MS), r = {0, 0}; int is = naps(&t, &r); must(is == -1 && errno == EINTR, "interrupted", is); must(hits == 5, "hits", hits);
    must(r.tv_sec >= 50 && r.tv_sec < 60, "rest", r.tv_sec); must(t.tv_sec == 60, "limit", t.tv_sec); wait(0); }
  // Out of handlers in the middle of waits, again and again.
  else if (!strcmp(k, "jumps")) { struct sigaction a = {.sa_handler = leaves, .sa_flags = SA_NODEFER}; sigaction(SIGALRM, &a, 0); every(100 * MS);
    while (hits < 60) { if (!sigsetjmp(out, 1)) { struct timespec t = of(60000 * MS); naps(&t, 0); must(0, "slept", hits); } }
    every(0); struct timespec t = of(1000 * MS); int64_t b = now(); must(naps(&t, 0) == 0, "after", 0); must(now() - b >= 1000 * MS, "after, ms", (now() - b) / MS); }
  else if (!strcmp(k, "errors")) { struct timespec bad = {0, 1000000000}, past = {-1, 0}; must(sleeps((void *)8, 0) == -1 && errno == EFAULT, "address", 0); must(naps((void *)-8, 0) == -1 && errno == EFAULT, "address", 1);
    must(naps(&bad, 0) == -1 && errno == EINVAL, "nanoseconds", 0); must(naps(&past, 0) == -1 && errno == EINVAL, "seconds", 0); must(poll((void *)8, 1, 10) == -1 && errno == EFAULT, "files", 0);
    must(syscall(SYS_ppoll, 0, 0, (void *)8, 0, 8) == -1 && errno == EFAULT, "limit", 0);
    struct timespec *c = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); *c = of(100 * MS); mprotect(c, 4096, PROT_READ);
    int p[2]; must(pipe(p) == 0, "pipe", 0); struct pollfd f = {p[0], POLLIN}; for (int i = 0; i < 3; i++) must(syscall(SYS_ppoll, &f, 1, c, 0, 8) == 0, "a limit that cannot be written", i);
    for (int i = 0; i < 3; i++) must(write(p[1], "x", 1) == 1 && syscall(SYS_ppoll, &f, 1, c, 0, 8) == 1, "a rest that cannot be written", i); }
  else if (!strcmp(k, "crowd")) { pthread_t t[1200]; pthread_attr_t a; pthread_attr_init(&a); pthread_attr_setstacksize(&a, 65536);
    for (long i = 0; i < 1200; i++) if (pthread_create(&t[i], &a, crowd, 0)) { printf("skipped: needs 1200 threads\n"); return 0; } for (int i = 0; i < 1200; i++) pthread_join(t[i], 0); }
  // Stopped and continued in the middle of waits, which are made again with what was left of them.
  else if (!strcmp(k, "stopped")) { pid_t me = getpid(); if (!fork()) { for (int i = 0; i < 40; i++) { struct timespec t = of(150 * MS); naps(&t, 0); kill(me, SIGSTOP); naps(&t, 0); kill(me, SIGCONT); } _exit(0); }
    for (int i = 0; i < 25; i++) { int64_t b = now(); struct timespec t = of(250 * MS); must(poll(0, 0, 250) == 0, "poll", i); must(now() - b >= 250 * MS, "poll, ms", (now() - b) / MS);
      b = now(); must(naps(&t, 0) == 0, "nap", i); must(now() - b >= 250 * MS, "nap, ms", (now() - b) / MS);
      b = now(); must(syscall(SYS_ppoll, 0, 0, &t, 0, 8) == 0, "ppoll", i); must(now() - b >= 250 * MS, "ppoll, ms", (now() - b) / MS); must(t.tv_sec == 0 && t.tv_nsec == 0, "rest", t.tv_nsec); } }
  // Children that share the memory, that have a copy, and new programs wait as well.
  else if (!strcmp(k, "children")) { for (int i = 0; i < 30; i++) { pid_t p = i % 2 ? vfork() : fork(); if (!p) { struct timespec t = of(500 * MS); int64_t b = now(); naps(&t, 0); if (now() - b < 500 * MS) _exit(1); if (i % 5) _exit(0);
      execl("/proc/self/exe", "detours", "many", (char *)0); _exit(2); } }
    int s; while (wait(&s) > 0) must(s == 0, "child", s); }
  else must(0, "no such kind", 0);
  return 0; }
