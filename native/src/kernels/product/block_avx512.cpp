#ifdef __AVX512F__

#define TIGHTSHIP_ISA avx512
#define TIGHTSHIP_VECTOR_BYTES 64
#include "block_exact.hpp"
#include "block_int8.hpp"
#include "block_int8_single.hpp"
#include "block_unpack.hpp"
#include "encoded_int8.hpp"
#include "encoded_loops.hpp"

#endif
