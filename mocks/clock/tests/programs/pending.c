// Waits for twenty instants of the monotonic clock, 5 ms after each other, and says what the wall clock shows in seconds. Ends itself where a wait hangs.
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main() {
    alarm(20);
    struct timespec until, wall;
    clock_gettime(CLOCK_MONOTONIC, &until);
    for (int i = 0; i < 20; i++) {
        until.tv_nsec += 5000000;
        if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
        if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, 0)) return 1;
    }
    clock_gettime(CLOCK_REALTIME, &wall);
    printf("%ld\n", (long)wall.tv_sec);
    return 0;
}
