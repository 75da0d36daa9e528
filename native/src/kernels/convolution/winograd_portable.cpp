#define TIGHTSHIP_ISA portable
#define TIGHTSHIP_VECTOR_BYTES 16
#include "winograd_loops.hpp"
