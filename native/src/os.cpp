#include "tightship/os.hpp"
