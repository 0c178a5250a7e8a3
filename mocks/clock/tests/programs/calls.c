// calls NAME: makes one kind of call that has a time in it, for ten seconds of this program's own time, and fails if anything about it is
// not as it would be with a clock of usual speed.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PLAN 10
typedef int64_t ns;
static ns now(clockid_t c) { struct timespec t; clock_gettime(c, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
static ns raw(clockid_t c) { struct timespec t; syscall(SYS_clock_gettime, c, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
static struct timespec at(clockid_t c, int s) { struct timespec t; clock_gettime(c, &t); t.tv_sec += s; return t; }
static void fail(const char *what, long value) { printf("%s: %ld (%s)\n", what, value, strerror(errno)); exit(1); }
static void must(int is, const char *what, long value) { if (!is) fail(what, value); }
static void handler(int s) { (void)s; }
static void on(int s) { struct sigaction a = {.sa_handler = handler}; sigaction(s, &a, 0); }
static volatile sig_atomic_t hits;
static void count(int s) { (void)s; hits++; }
// Sends itself a signal after so many own milliseconds.
static void *later(void *ms) { usleep((long)ms * 1000); kill(getpid(), SIGUSR1); return 0; }
static void interrupt(long ms) {
  pthread_t t; on(SIGUSR1); sigset_t m; sigemptyset(&m); sigaddset(&m, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &m, 0); pthread_create(&t, 0, later, (void *)ms); pthread_sigmask(SIG_UNBLOCK, &m, 0); }
static const struct timespec plan = {PLAN, 0};
static void *owner(void *m) { pthread_mutex_lock(m); pause(); return 0; }

static int wait_by(const char *n) {
#define IS(x) (!strcmp(n, x))
  uint32_t word = 0; struct timespec t = plan, rest = {0}; struct timeval v = {PLAN, 0}; int e = epoll_create1(0); struct epoll_event ev;
  if (IS("nanosleep")) return nanosleep(&plan, 0);
  if (IS("interrupted")) { interrupt(4000); must(nanosleep(&plan, &rest) == -1 && errno == EINTR, "not interrupted", 0);
    must(rest.tv_sec >= 2 && rest.tv_sec < 8, "rest", rest.tv_sec); return nanosleep(&rest, 0); }
  if (IS("interrupted-relative")) { interrupt(4000); must(clock_nanosleep(CLOCK_MONOTONIC, 0, &plan, &rest) == EINTR, "not interrupted", 0);
    must(rest.tv_sec >= 2 && rest.tv_sec < 8, "rest", rest.tv_sec); return nanosleep(&rest, 0); }
  if (IS("absolute")) { t = at(CLOCK_MONOTONIC, PLAN); return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0); }
  if (IS("absolute-real")) { t = at(CLOCK_REALTIME, PLAN); return clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, 0); }
  if (IS("absolute-boot")) { t = at(CLOCK_BOOTTIME, PLAN); return clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &t, 0); }
  if (IS("relative-real")) return clock_nanosleep(CLOCK_REALTIME, 0, &plan, 0);
#define TIMES_OUT(call) return (call) == -1 && errno == ETIMEDOUT ? 0 : -1
  if (IS("futex")) TIMES_OUT(syscall(SYS_futex, &word, FUTEX_WAIT, 0, &plan));
  if (IS("futex-bitset")) { t = at(CLOCK_MONOTONIC, PLAN); TIMES_OUT(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &t, 0, ~0)); }
  if (IS("futex-bitset-real")) { t = at(CLOCK_REALTIME, PLAN); TIMES_OUT(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 0, &t, 0, ~0)); }
  if (IS("futex-waitv")) { t = at(CLOCK_MONOTONIC, PLAN); struct { uint64_t v, a; uint32_t f, r; } w = {0, (uint64_t)&word, 2, 0};
    TIMES_OUT(syscall(449, &w, 1, 0, &t, CLOCK_MONOTONIC)); }
  if (IS("futex2-wait")) { t = at(CLOCK_REALTIME, PLAN); int r = syscall(455, &word, 0, 0xffffffffUL, 2, &t, CLOCK_REALTIME);
    if (r == -1 && errno == ENOSYS) { printf("skipped: needs Linux 6.7\n"); return sleep(PLAN); } return r == -1 && errno == ETIMEDOUT ? 0 : -1; }
  if (IS("futex-pi") || IS("futex-pi2")) { pthread_mutexattr_t a; pthread_mutexattr_init(&a); pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
    static pthread_mutex_t m; pthread_mutex_init(&m, &a); pthread_t o; pthread_create(&o, 0, owner, &m);
    while (pthread_mutex_trylock(&m) == 0) { pthread_mutex_unlock(&m); sched_yield(); }
    if (IS("futex-pi")) { t = at(CLOCK_REALTIME, PLAN); return pthread_mutex_timedlock(&m, &t) == ETIMEDOUT ? 0 : -1; }
    t = at(CLOCK_MONOTONIC, PLAN); return pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &t) == ETIMEDOUT ? 0 : -1; }
  if (IS("futex-requeue")) { static int pi; t = at(CLOCK_MONOTONIC, PLAN); TIMES_OUT(syscall(SYS_futex, &word, 11 | 128, 0, &t, &pi, 0)); }
  if (IS("condition")) { pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; pthread_cond_t c = PTHREAD_COND_INITIALIZER; t = at(CLOCK_REALTIME, PLAN);
    pthread_mutex_lock(&m); return pthread_cond_timedwait(&c, &m, &t) == ETIMEDOUT ? 0 : -1; }
  if (IS("poll")) return poll(0, 0, PLAN * 1000);
  if (IS("poll-short")) { for (int i = 0; i < 50; i++) if (poll(0, 0, PLAN * 20)) return -1; return 0; }
  // A child that ends is no reason to begin again, when nobody handles its signal.
  if (IS("poll-restarted")) { for (int i = 1; i < 4; i++) if (!fork()) { sleep(i * 3); _exit(0); }
    ns b = now(CLOCK_MONOTONIC); int r = poll(0, 0, PLAN * 1000); ns took = now(CLOCK_MONOTONIC) - b; must(took < (PLAN + 8) * 1000000000LL, "began again", took / 1000000); return r; }
  if (IS("poll-interrupted")) { interrupt(4000); if (poll(0, 0, 60000) != -1 || errno != EINTR) return -1; return sleep(PLAN - 3); }
  if (IS("ppoll")) return syscall(SYS_ppoll, 0, 0, &t, 0, 8) || t.tv_sec || t.tv_nsec;
  if (IS("ppoll-constant")) return syscall(SYS_ppoll, 0, 0, &plan, 0, 8);
  if (IS("pselect")) { int p[2]; if (pipe(p)) return -1; fd_set f; FD_ZERO(&f); FD_SET(p[1], &f);
    t = plan; if (syscall(SYS_pselect6, p[1] + 1, 0, &f, 0, &t, 0) != 1) return -1; must(t.tv_sec >= PLAN - 3, "rest", t.tv_sec);
    t = plan; return syscall(SYS_pselect6, 0, 0, 0, 0, &t, 0) || t.tv_sec || t.tv_nsec; }
#ifdef SYS_select
  if (IS("select")) { interrupt(4000); if (syscall(SYS_select, 0, 0, 0, 0, &v) != -1 || errno != EINTR) return -1; must(v.tv_sec >= 2 && v.tv_sec < 8, "rest", v.tv_sec);
    return syscall(SYS_select, 0, 0, 0, 0, &v) || v.tv_sec || v.tv_usec; }
#endif
  if (IS("epoll")) return epoll_wait(e, &ev, 1, PLAN * 1000);
  if (IS("epoll-mask")) { sigset_t m; sigemptyset(&m); return epoll_pwait(e, &ev, 1, PLAN * 1000, &m); }
  if (IS("epoll-fine")) return syscall(441, e, &ev, 1, &plan, 0, 8);
  if (IS("sigtimedwait")) { sigset_t m; sigemptyset(&m); sigaddset(&m, SIGUSR2); return sigtimedwait(&m, 0, &plan) == -1 && errno == EAGAIN ? 0 : -1; }
  if (IS("semtimedop")) { int s = semget(IPC_PRIVATE, 1, 0600); struct sembuf b = {0, -1, 0}; int r = semtimedop(s, &b, 1, &plan); int why = errno; semctl(s, 0, IPC_RMID);
    return r == -1 && why == EAGAIN ? 0 : -1; }
  if (IS("message-queue")) { char name[64]; snprintf(name, sizeof name, "/longhaul-clock-%d", getpid()); struct mq_attr a = {.mq_maxmsg = 1, .mq_msgsize = 8};
    mqd_t q = mq_open(name, O_RDWR | O_CREAT, 0600, &a); if (q == -1) { printf("skipped: needs message queues\n"); return sleep(PLAN); } mq_unlink(name); char b[8]; t = at(CLOCK_REALTIME, PLAN);
    return mq_timedreceive(q, b, 8, 0, &t) == -1 && errno == ETIMEDOUT ? 0 : -1; }
  if (IS("message-queue-full")) { char name[64]; snprintf(name, sizeof name, "/longhaul-clock-full-%d", getpid()); struct mq_attr a = {.mq_maxmsg = 1, .mq_msgsize = 8};
    mqd_t q = mq_open(name, O_RDWR | O_CREAT, 0600, &a); if (q == -1) { printf("skipped: needs message queues\n"); return sleep(PLAN); } mq_unlink(name); t = at(CLOCK_REALTIME, PLAN);
    must(mq_send(q, "x", 1, 0) == 0, "first", 0); return mq_timedsend(q, "y", 1, 0, &t) == -1 && errno == ETIMEDOUT ? 0 : -1; }
#ifdef __x86_64__
  if (IS("io-pgetevents")) { aio_context_t c = 0; struct io_event o; if (syscall(SYS_io_setup, 1, &c)) return -1; return syscall(333, c, 1, 1, &o, &plan, 0); }
#endif
  if (IS("io-getevents")) { aio_context_t c = 0; struct io_event o; if (syscall(SYS_io_setup, 1, &c)) return -1; return syscall(SYS_io_getevents, c, 1, 1, &o, &plan); }
  if (IS("timerfd") || IS("timerfd-absolute")) { int is = IS("timerfd-absolute"), f = timerfd_create(CLOCK_REALTIME, 0); struct itimerspec s = {{1, 0}, {PLAN - 4, 0}}, g; uint64_t c;
    if (is) s.it_value = at(CLOCK_REALTIME, PLAN - 4);
    timerfd_settime(f, is ? TFD_TIMER_ABSTIME : 0, &s, 0); timerfd_gettime(f, &g);
    must(g.it_interval.tv_sec == 1 && g.it_interval.tv_nsec == 0, "period", g.it_interval.tv_nsec); must(g.it_value.tv_sec >= PLAN - 7 && g.it_value.tv_sec < PLAN - 3, "left", g.it_value.tv_sec);
    for (uint64_t sum = 0; sum < 5; sum += c) if (read(f, &c, 8) != 8) return -1; return 0; }
  if (IS("timer") || IS("timer-absolute")) { int is = IS("timer-absolute"); timer_t i; struct sigevent g = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 3}; signal(SIGRTMIN + 3, count); sigset_t m; sigemptyset(&m);
    if (timer_create(CLOCK_MONOTONIC, &g, &i)) return -1; struct itimerspec s = {{0, 0}, {PLAN, 0}}, o; if (is) s.it_value = at(CLOCK_MONOTONIC, PLAN);
    timer_settime(i, is ? TIMER_ABSTIME : 0, &s, 0); timer_gettime(i, &o); must(o.it_value.tv_sec >= PLAN - 3 && o.it_value.tv_sec <= PLAN, "left", o.it_value.tv_sec); while (!hits) pause(); return 0; }
  if (IS("timer-of-processor")) { timer_t i; struct sigevent g = {.sigev_notify = SIGEV_NONE}; if (timer_create(CLOCK_PROCESS_CPUTIME_ID, &g, &i)) return -1;
    struct itimerspec s = {{0, 0}, {900, 0}}, o; timer_settime(i, 0, &s, 0); timer_gettime(i, &o); must(o.it_value.tv_sec >= 890 && o.it_value.tv_sec <= 900, "left", o.it_value.tv_sec); return sleep(PLAN); }
  if (IS("setitimer")) { signal(SIGALRM, count); struct itimerval s = {{0, 0}, {PLAN, 0}}, o; setitimer(ITIMER_REAL, &s, 0); getitimer(ITIMER_REAL, &o);
    must(o.it_value.tv_sec >= PLAN - 3 && o.it_value.tv_sec <= PLAN, "left", o.it_value.tv_sec); while (!hits) pause(); return 0; }
  if (IS("setitimer-period")) { signal(SIGALRM, count); struct itimerval s = {{2, 0}, {2, 0}}; setitimer(ITIMER_REAL, &s, 0); while (hits < PLAN / 2) pause(); return 0; }
  if (IS("alarm")) { signal(SIGALRM, count); must(alarm(500) == 0, "before", 0); int left = alarm(PLAN); must(left >= 497 && left <= 500, "left", left); while (!hits) pause(); return 0; }
  if (IS("socket")) { int p[2]; if (socketpair(AF_UNIX, SOCK_STREAM, 0, p)) return -1; setsockopt(p[0], SOL_SOCKET, SO_RCVTIMEO, &v, sizeof v); char c; int r = recv(p[0], &c, 1, 0);
    must(r == -1 && errno == EAGAIN, "received", r); socklen_t l = sizeof v; getsockopt(p[0], SOL_SOCKET, SO_RCVTIMEO, &v, &l); must(v.tv_sec >= PLAN && v.tv_sec < PLAN + 2, "said", v.tv_sec); return 0; }
  if (IS("socket-send")) { int p[2]; if (socketpair(AF_UNIX, SOCK_STREAM, 0, p)) return -1; setsockopt(p[0], SOL_SOCKET, SO_SNDTIMEO, &v, sizeof v); static char b[4096]; while (send(p[0], b, sizeof b, MSG_DONTWAIT) > 0);
    int r = send(p[0], b, sizeof b, 0); must(r == -1 && errno == EAGAIN, "sent", r); return 0; }
  // Of a peer that answers nothing: a listener whose queue is full.
  if (IS("user-timeout")) { int l = socket(AF_INET, SOCK_STREAM, 0), x = PLAN * 1000; struct sockaddr_in a = {AF_INET, 0, {htonl(0x7f000001)}}; socklen_t n = sizeof a; bind(l, (void *)&a, n); listen(l, 0); getsockname(l, (void *)&a, &n);
    for (int i = 0; i < 3; i++) { int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0); connect(s, (void *)&a, n); } usleep(100000);
    int s = socket(AF_INET, SOCK_STREAM, 0); setsockopt(s, IPPROTO_TCP, TCP_USER_TIMEOUT, &x, sizeof x); int r = connect(s, (void *)&a, n); must(r == -1 && errno == ETIMEDOUT, "connected", r); return 0; }
  if (IS("recvmmsg")) { int p[2]; if (socketpair(AF_UNIX, SOCK_DGRAM, 0, p)) return -1; char c; struct iovec b = {&c, 1}; struct mmsghdr h[2] = {{.msg_hdr = {.msg_iov = &b, .msg_iovlen = 1}}, {.msg_hdr = {.msg_iov = &b, .msg_iovlen = 1}}};
    if (send(p[1], "x", 1, 0) != 1) return -1; if (recvmmsg(p[0], h, 1, 0, &t) != 1) return -1; must(t.tv_sec >= PLAN - 3 && t.tv_sec <= PLAN, "rest", t.tv_sec); return sleep(PLAN); }
  if (IS("keep-alive")) { int s = socket(AF_INET, SOCK_STREAM, 0), x = 300, y = 0; socklen_t l = sizeof y; setsockopt(s, IPPROTO_TCP, TCP_KEEPIDLE, &x, sizeof x); getsockopt(s, IPPROTO_TCP, TCP_KEEPIDLE, &y, &l);
    must(y == 300, "said", y); x = 70; setsockopt(s, IPPROTO_TCP, TCP_KEEPINTVL, &x, sizeof x); getsockopt(s, IPPROTO_TCP, TCP_KEEPINTVL, &y, &l); must(y == 70, "said", y); x = 60000; setsockopt(s, IPPROTO_TCP, TCP_USER_TIMEOUT, &x, sizeof x); getsockopt(s, IPPROTO_TCP, TCP_USER_TIMEOUT, &y, &l); must(y == 60000, "said", y); return sleep(PLAN); }
  if (IS("io-uring")) { char b[256] = {0}; must(syscall(SYS_io_uring_setup, 4, b) == -1 && errno == ENOSYS, "io_uring", 0); return sleep(PLAN); }
  if (IS("set-clock")) { struct timespec x = {1, 0}; must(syscall(SYS_clock_settime, CLOCK_REALTIME, &x) == -1 && errno == EPERM, "set", 0); return sleep(PLAN); }
  // The page, calls past it, seconds and microseconds tell one time, which never goes back.
  if (IS("one-time")) { ns last = 0, end = now(CLOCK_REALTIME) + PLAN * 1000000000LL; for (long i = 0; last < end; i++) { ns x = 0; struct timeval d;
      switch (i % 5) { case 0: x = now(CLOCK_REALTIME); break; case 1: x = raw(CLOCK_REALTIME); break; case 2: gettimeofday(&d, 0); x = d.tv_sec * 1000000000LL + d.tv_usec * 1000; x += 999; break;
        case 3: syscall(SYS_gettimeofday, &d, 0); x = d.tv_sec * 1000000000LL + d.tv_usec * 1000; x += 999; break; case 4: x = (time(0) + 1) * 1000000000LL - 1; if (x < last) fail("seconds", last - x); continue; }
      must(x >= last - 999, "went back", last - x); must(x - last < 4000000000LL || i < 5, "jumped", x - last); last = x; } return 0; }
  if (IS("resolution")) { struct timespec a, b; clock_getres(CLOCK_MONOTONIC, &a); syscall(SYS_clock_getres, CLOCK_MONOTONIC, &b); must(a.tv_nsec == b.tv_nsec && a.tv_nsec >= 1, "page", a.tv_nsec); must(!getenv("RATE") || a.tv_nsec == atoi(getenv("RATE")), "resolution", a.tv_nsec); return sleep(PLAN); }
  if (IS("processor")) { ns a = now(CLOCK_PROCESS_CPUTIME_ID), b = now(CLOCK_MONOTONIC); while (now(CLOCK_MONOTONIC) - b < PLAN * 1000000000LL); must(now(CLOCK_PROCESS_CPUTIME_ID) - a < PLAN * 1000000000LL / 10, "counted", 0); return 0; }
  fail("no such call", 0); return -1; }

int main(int n, char **v) {
  must(n == 2, "usage: calls NAME", n); ns begin = now(CLOCK_MONOTONIC), real = now(CLOCK_REALTIME);
  int r = wait_by(v[1]); must(r == 0, "result", r);
  ns took = now(CLOCK_MONOTONIC) - begin, walked = now(CLOCK_REALTIME) - real; must(took >= PLAN * 1000000000LL - 1000000, "ended early, after ms", took / 1000000);
  must(llabs(took - walked) < 500000000LL, "clocks differ", (took - walked) / 1000000); printf("%ld ms\n", (long)(took / 1000000)); return 0; }
