# Programs of threads on the parts that threads share, for CTest: `ctest --preset tsan`. A failing
# allocation, a race or a block that is not given back ends one with an error.
enable_testing()
set(TESTS ${CMAKE_CURRENT_SOURCE_DIR}/../tests)

# The sources under test, in one library: a sanitizer compiles these alone, not the whole core.
file(GLOB_RECURSE STRESSED CONFIGURE_DEPENDS
     ${CMAKE_CURRENT_SOURCE_DIR}/src/os/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/src/resource/*.cpp
     ${CMAKE_CURRENT_SOURCE_DIR}/src/primitive/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/src/packing/*.cpp)
add_library(stressed STATIC EXCLUDE_FROM_ALL ${STRESSED})
target_include_directories(stressed PUBLIC include src)
target_compile_features(stressed PUBLIC cxx_std_20)
target_link_libraries(stressed PUBLIC Threads::Threads ${CMAKE_DL_LIBS})

add_library(fake_cuda SHARED ${TESTS}/native/fake_cuda.cpp)
target_compile_features(fake_cuda PRIVATE cxx_std_20)
target_include_directories(fake_cuda PRIVATE include)

# stress(NAME SOURCE ARGUMENT ...) runs a program; a sanitizer needs fewer steps for threads.
add_custom_target(stress DEPENDS fake_cuda)
function(stress NAME SOURCE)
  if(NOT TARGET ${SOURCE})
    add_executable(${SOURCE} ${TESTS}/native/${SOURCE}.cpp)
    target_link_libraries(${SOURCE} PRIVATE stressed)
    add_dependencies(stress ${SOURCE})
  endif()
  add_test(NAME ${NAME} COMMAND ${SOURCE} ${ARGN})
  set_tests_properties(${NAME} PROPERTIES TIMEOUT 600)
endfunction()

if(CMAKE_CXX_FLAGS MATCHES "sanitize=thread")
  set(RESOURCE_STEPS 6000)
  set(CUDA_STEPS 1000)
  set(PRIMITIVE_STEPS 3000)
else()
  set(RESOURCE_STEPS 30000)
  set(CUDA_STEPS 3000)
  set(PRIMITIVE_STEPS 10000)
  stress(primitive_refused refused_primitive)
endif()
foreach(SEED 1 2)
  stress(resource_${SEED} stress_resource ${RESOURCE_STEPS} ${SEED})
  set_tests_properties(resource_${SEED} PROPERTIES PASS_REGULAR_EXPRESSION "scarce")
  stress(cuda_${SEED} stress_cuda $<TARGET_FILE:fake_cuda> ${CUDA_STEPS} ${SEED})
  stress(primitive_${SEED} stress_primitive ${PRIMITIVE_STEPS} ${SEED})
endforeach()
