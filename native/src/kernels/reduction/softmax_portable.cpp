#define TIGHTSHIP_ISA portable
#define TIGHTSHIP_VECTOR_BYTES 16
#include "softmax_loops.hpp"
