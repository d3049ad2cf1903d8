/* kernels/dispatch.c: which tables this machine can run, and which one is used. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kern.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* XCR0: the register state that the operating system saves. */
static unsigned saved_state(void)
{
    unsigned a, d;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    return a;
}

static bool has_avx2(void)
{
    unsigned a, b, c, d;
    const unsigned need = bit_FMA | bit_F16C | bit_OSXSAVE | bit_AVX;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & need) != need || (saved_state() & 0x6) != 0x6)
        return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX2);
}

static bool has_avx512(void)
{
    unsigned a, b, c, d;
    const unsigned need = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    return has_avx2() && (saved_state() & 0xe6) == 0xe6 && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
           (b & need) == need;
}
#endif

typedef struct kern_entry {
    const weir_kern *kern;
    bool (*runs)(void); /* NULL: everywhere */
} kern_entry;

/* From the plainest to the fastest. */
static const kern_entry tables[] = {
    {&weir_kern_ref, NULL},
#if defined(__x86_64__)
    {&weir_kern_avx2, has_avx2},
    {&weir_kern_avx512, has_avx512},
#endif
};
enum { N_TABLES = sizeof tables / sizeof tables[0] };

int weir_kern_available(const weir_kern **out, int cap)
{
    int n = 0;
    for (int i = 0; i < N_TABLES && n < cap; i++)
        if (!tables[i].runs || tables[i].runs())
            out[n++] = tables[i].kern;
    return n;
}

const weir_kern *weir_kern_best(void)
{
    /* Asking the processor is slow inside a virtual machine, and the answer never changes. */
    static _Atomic(const weir_kern *) best;
    const weir_kern *k = atomic_load_explicit(&best, memory_order_relaxed);
    if (!k) {
        const weir_kern *all[N_TABLES];
        k = all[weir_kern_available(all, N_TABLES) - 1];
        atomic_store_explicit(&best, k, memory_order_relaxed);
    }
    return k;
}

weir_status weir_kern_pick(const weir_kern **out, const char *name, weir_err *err)
{
    if (!name)
        name = getenv("WEIR_KERNEL");
    if (!name || !*name) {
        *out = weir_kern_best();
        return WEIR_OK;
    }
    for (int i = 0; i < N_TABLES; i++)
        if (!strcmp(tables[i].kern->name, name)) {
            if (tables[i].runs && !tables[i].runs())
                return weir_fail(err, WEIR_E_ARG, "kernel table '%s' needs instructions that this processor lacks",
                                 name);
            *out = tables[i].kern;
            return WEIR_OK;
        }
    return weir_fail(err, WEIR_E_ARG, "unknown kernel table '%s'; known: ref, avx2, avx512", name);
}

const char *weir_kern_name(const weir_kern *k)
{
    return k->name;
}
