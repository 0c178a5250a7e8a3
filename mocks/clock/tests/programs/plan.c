// plan THREADS: threads that wait one time after the other, as `s100,p20;t5`: sleep, futex, poll, epoll, timer, select. Prints how long all
// took by its own clock, in nanoseconds.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static int64_t now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
static void *thread(void *text) {
  char *rest = 0;
  for (char *s = strtok_r(text, ",", &rest); s; s = strtok_r(0, ",", &rest)) {
    long ms = atol(s + 1); struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    switch (*s) {
    case 's': nanosleep(&t, 0); break;
    case 'f': { pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; pthread_cond_t c = PTHREAD_COND_INITIALIZER; struct timespec e; clock_gettime(CLOCK_REALTIME, &e);
      e.tv_sec += t.tv_sec; e.tv_nsec += t.tv_nsec; if (e.tv_nsec >= 1000000000) { e.tv_sec++; e.tv_nsec -= 1000000000; }
      pthread_mutex_lock(&m); while (pthread_cond_timedwait(&c, &m, &e) != ETIMEDOUT); break; }
    case 'p': poll(0, 0, ms); break;
    case 'e': { int e = epoll_create1(0); struct epoll_event v; epoll_wait(e, &v, 1, ms); close(e); break; }
    case 't': { int f = timerfd_create(CLOCK_MONOTONIC, 0); struct itimerspec i = {{0, 0}, t}; uint64_t n; timerfd_settime(f, 0, &i, 0); if (read(f, &n, 8) != 8) exit(2); close(f); break; }
    case 'w': { struct timeval v = {ms / 1000, ms % 1000 * 1000}; select(0, 0, 0, 0, &v); break; } } }
  return 0; }

int main(int n, char **v) {
  pthread_t t[64]; int c = 0; char *rest = 0; int64_t began = now();
  for (char *s = strtok_r(v[1], ";", &rest); s; s = strtok_r(0, ";", &rest)) pthread_create(&t[c++], 0, thread, s);
  for (int i = 0; i < c; i++) pthread_join(t[i], 0);
  printf("%ld\n", (long)(now() - began)); return 0; }
