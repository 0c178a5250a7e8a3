// tree KIND: threads and processes in any order, and whether they see one time.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static int64_t now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
static void nap(long ms) { struct timespec t = {ms / 1000, ms % 1000 * 1000000}; while (nanosleep(&t, &t) && errno == EINTR); }
static _Atomic int64_t *shared;
static atomic_int back;
// Nobody reads an earlier time than another one has already read.
static void look(int times) {
  for (int i = 0; i < times; i++) {
    int64_t before = atomic_load(shared), seen = now();
    if (seen < before) atomic_fetch_add(&back, 1);
    while (before < seen && !atomic_compare_exchange_weak(shared, &before, seen)); } }
static void *thread(void *n) { nap((long)n % 50 * 10); look(200); nap(3000); return 0; }
static void *execs(void *v) { nap(500); execv("/proc/self/exe", v); return 0; }
static void *naps(void *v) { for (;;) nap(100); return v; }
static volatile sig_atomic_t hits; static void count(int s) { hits++; }

int main(int n, char **v) {
  shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0); int64_t began = now(); const char *k = n > 1 ? v[1] : "";
  if (!strcmp(k, "threads")) {
    pthread_t t[400]; pthread_attr_t a; pthread_attr_init(&a); pthread_attr_setstacksize(&a, 65536);
    for (long i = 0; i < 400; i++) if (pthread_create(&t[i], &a, thread, (void *)i)) return 2;
    for (int i = 0; i < 400; i++) pthread_join(t[i], 0);
    if (back) { printf("went back %d times\n", back); return 3; } }
  else if (!strcmp(k, "processes")) {
    for (int i = 0; i < 60; i++) { pid_t p = i % 3 == 1 ? vfork() : fork();
      if (!p) { if (i % 3 == 1) { execl("/proc/self/exe", "tree", "nap", (char *)0); _exit(9); }
        if (i % 3 == 2) { pthread_t t; pthread_create(&t, 0, naps, 0); if (!fork()) { nap(500); _exit(0); } wait(0); }
        look(300); nap(2000); look(300); _exit(back ? 3 : 0); } }
    char *w[] = {"tree", "nap", 0}; pid_t p; if (posix_spawn(&p, "/proc/self/exe", 0, 0, w, environ)) return 4;
    int s, c = 0; while (wait(&s) > 0) { c++; if (s) { printf("status %x\n", s); return 5; } }
    if (c != 61 || errno != ECHILD) { printf("%d children\n", c); return 6; } }
  else if (!strcmp(k, "exec")) { pthread_t t; for (int i = 0; i < 20; i++) pthread_create(&t, 0, naps, 0); char *w[] = {"tree", "nap", 0}; pthread_create(&t, 0, execs, w); nap(60000); return 7; }
  else if (!strcmp(k, "signals")) { signal(SIGRTMIN + 5, count); signal(SIGUSR1, count); pthread_t t; pthread_create(&t, 0, naps, 0); pid_t me = getpid();
    if (!fork()) { for (int i = 0; i < 300; i++) { kill(me, i % 2 ? SIGRTMIN + 5 : SIGUSR1); nap(10); } _exit(0); }
    nap(6000); int s; while (waitpid(-1, &s, 0) == -1 && errno == EINTR); if (hits < 150) { printf("%d signals\n", hits); return 8; } }
  else if (!strcmp(k, "nap")) { nap(3000); }
  else if (!strcmp(k, "crash")) { *(volatile int *)8 = 1; }
  else return 1;
  int64_t took = now() - began; if (took < 2990000000LL) { printf("%ld ms\n", (long)(took / 1000000)); return 10; }
  return 0; }
