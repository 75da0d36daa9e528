#ifdef __AVX512VNNI__

#define TIGHTSHIP_ISA vnni
#define TIGHTSHIP_VECTOR_BYTES 64
#include "block_int8.hpp"
#include "block_int8_panel.hpp"
#include "block_int8_single.hpp"
#include "block_int8_strip.hpp"
#include "encoded_int8_panel.hpp"

#endif
