// Two processes of three threads each, which look at clocks until standard output is gone. A monotonic clock that goes back, in whichever
// thread of the process, is said; each process says now and then how far its wall clock and its clock since boot are ahead of the monotonic one, and how far
// that is itself, in milliseconds.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static _Atomic long *newest;

static long now(clockid_t id) {
    struct timespec time;
    clock_gettime(id, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void *look(void *unused) {
    for (;;) {
        for (int i = 0; i < 1000; i++) {
            long before = atomic_load(newest), here = now(CLOCK_MONOTONIC);
            if (here < before) {
                printf("back %ld\n", before - here);
                fflush(stdout);
            }
            while (before < here && !atomic_compare_exchange_weak(newest, &before, here)) {
            }
        }
        usleep(2000);
    }
}

int main() {
    const char *name = fork() ? "parent" : "child";
    newest = calloc(1, sizeof *newest);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pthread_t thread;
    for (int i = 0; i < 2; i++) pthread_create(&thread, 0, look, 0);
    for (;;) {
        long monotonic = now(CLOCK_MONOTONIC), wall = now(CLOCK_REALTIME), boot = now(CLOCK_BOOTTIME);
        printf("%s %ld %ld %ld\n", name, (wall - monotonic) / 1000000, (boot - monotonic) / 1000000, monotonic / 1000000);
        if (fflush(stdout)) return 0;
        usleep(3000);
    }
}
