# Links for the glibc of a manylinux tag, whatever glibc the building machine has: GCC compiles as
# it always does, and Zig's linker resolves against the symbols that the older glibc has. libstdc++
# becomes part of each library; `newer_glibc.cpp` has the functions that it takes from newer ones.
#
#   -DCMAKE_PROJECT_tightship_INCLUDE=manylinux.cmake
#   -DTIGHTSHIP_ZIG=zig            the program
#   -DTIGHTSHIP_GLIBC=2.28
foreach(NAME TIGHTSHIP_ZIG TIGHTSHIP_GLIBC)
  if(NOT ${NAME})
    message(FATAL_ERROR "${NAME} is not set; see the top of ${CMAKE_CURRENT_LIST_FILE}.")
  endif()
endforeach()
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  message(FATAL_ERROR "Wheels are compiled by GCC, not by ${CMAKE_CXX_COMPILER_ID}: "
                      "its libstdc++ is what they contain. Set CXX=g++.")
endif()

foreach(NAME libstdc++.a libgcc.a libgcc_s.so.1)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${NAME}
                  OUTPUT_VARIABLE PLACE OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT EXISTS ${PLACE})
    message(FATAL_ERROR "${CMAKE_CXX_COMPILER} has no ${NAME}.")
  endif()
  list(APPEND GCC_LIBRARIES ${PLACE})
endforeach()
list(JOIN GCC_LIBRARIES " " GCC_LIBRARIES)

set(NEWER_GLIBC ${CMAKE_BINARY_DIR}/newer_glibc.o)
execute_process(
  COMMAND ${CMAKE_CXX_COMPILER} -c -O2 -fPIC -std=c++20 -fvisibility=hidden
          ${CMAKE_CURRENT_LIST_DIR}/newer_glibc.cpp -o ${NEWER_GLIBC}
  COMMAND_ERROR_IS_FATAL ANY)

set(ZIG_LINK "${TIGHTSHIP_ZIG} cc -target x86_64-linux-gnu.${TIGHTSHIP_GLIBC} -shared")
set(LINKED_FILES "-o <TARGET> <OBJECTS> <LINK_LIBRARIES> ${NEWER_GLIBC} ${GCC_LIBRARIES}")
set(CMAKE_CXX_CREATE_SHARED_LIBRARY
    "${ZIG_LINK} <SONAME_FLAG><TARGET_SONAME> <LINK_FLAGS> ${LINKED_FILES}")
set(CMAKE_CXX_CREATE_SHARED_MODULE
    "${ZIG_LINK} -Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/exported.map <LINK_FLAGS> ${LINKED_FILES}")
set(CMAKE_LINK_DEPENDS_USE_LINKER OFF)
