#include "signals.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t seen;

static void on_signal(int sig)
{
    seen = sig;
}

void weir_signals_catch(void)
{
    static const int number[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND}, before;
    sigemptyset(&sa.sa_mask);
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        if (sigaction(number[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(number[i], &sa, NULL);
}

int weir_signals_seen(void)
{
    return (int)seen;
}

bool weir_signals_stop(void *unused)
{
    (void)unused;
    return seen != 0;
}
