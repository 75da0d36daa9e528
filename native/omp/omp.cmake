# Our OpenMP runtime: a library of its own, because oneDNN's loader looks for one.
add_library(tightship_omp SHARED
            ${CMAKE_CURRENT_SOURCE_DIR}/omp/code.cpp ${CMAKE_CURRENT_SOURCE_DIR}/omp/cpu.cpp
            ${CMAKE_CURRENT_SOURCE_DIR}/omp/openmp.cpp ${CMAKE_CURRENT_SOURCE_DIR}/omp/team.cpp)
set(OMP_SYMBOLS ${CMAKE_CURRENT_SOURCE_DIR}/omp/runtime.map)
target_include_directories(tightship_omp PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/omp
                           PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/include)
target_compile_features(tightship_omp PRIVATE cxx_std_20)
target_compile_options(tightship_omp PRIVATE -Wall -Wextra -Wconversion -Wno-sign-conversion)
target_link_options(tightship_omp PRIVATE -Wl,--version-script=${OMP_SYMBOLS} -Wl,-z,nodelete)
set_target_properties(tightship_omp PROPERTIES OUTPUT_NAME tsomp LINK_DEPENDS ${OMP_SYMBOLS})
find_package(Threads REQUIRED)
target_link_libraries(tightship_omp PRIVATE Threads::Threads)
install(TARGETS tightship_omp LIBRARY DESTINATION tightship)

target_link_libraries(tightship_native PUBLIC tightship_omp)
