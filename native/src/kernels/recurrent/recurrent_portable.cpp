#define TIGHTSHIP_ISA portable
#define TIGHTSHIP_VECTOR_BYTES 16
#include "recurrent_gradient_loops.hpp"
#include "recurrent_loops.hpp"
