#ifdef __AVX512F__

#define TIGHTSHIP_ISA avx512
#define TIGHTSHIP_VECTOR_BYTES 64
#include "softmax_loops.hpp"

#endif
