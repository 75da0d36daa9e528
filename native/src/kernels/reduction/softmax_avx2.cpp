#ifdef __AVX2__

#define TIGHTSHIP_ISA avx2
#define TIGHTSHIP_VECTOR_BYTES 32
#include "softmax_loops.hpp"

#endif
