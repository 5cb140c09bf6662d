/* Which build of the kernels this processor can run. In the portable build, which every processor of its kind runs. */

#include "lanes.h"

/* The level of an x86-64 processor, as compilers number them; 1 for any other. */
int felrec_processor_level(void)
{
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
    __builtin_cpu_init();
    if (!(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")))
        return 1;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd")
               ? 4
               : 3;
#else
    return 1;
#endif
}

/* Floats that a build computes at once, which decides the order of its sums. */
int felrec_lanes(void) { return LANES; }
