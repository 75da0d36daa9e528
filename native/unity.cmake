# A build from nothing compiles files of one folder together, because much of its time goes into
# headers and templates that they share. A file with options of its own (an instruction set, -O2) is
# left alone by CMake, so no file changes its options. Off beside a compiler cache and in build
# folders that are kept (presets, editable installation): there a change would compile neighbours.
if(SKBUILD_STATE STREQUAL "wheel" AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(UNITY_DEFAULT ON)
else()
  set(UNITY_DEFAULT OFF)
endif()
option(TIGHTSHIP_UNITY "Compile files of one folder together" ${UNITY_DEFAULT})

# These repeat a name of a neighbour's unnamed namespace, or take as long as a group does.
string(JOIN "|" ALONE
  "kernels/elementwise/[a-z_]+" "kernels/movement/(mark|scatter)"
  "kernels/reduction/(normalization|position|running_sum|softmax)"
  "kernels/gradient/(clip|dropout|update)" "kernels/recurrent/recurrent_gradient"
  "kernels/attention/rotary" "kernels/convolution/(depthwise|streamed_convolution|winograd)"
  "resource/(free_bits|adaptor/guarded)" "flow/least_order" "driver/ring"
  "bind/resource/numpy_(resource|threads)")

# Joins up to FILES_MAX files of each folder; both cores still have work at the end.
function(tightship_join TARGET FILES_MAX)
  if(NOT TIGHTSHIP_UNITY)
    return()
  endif()
  set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  foreach(SOURCE ${ARGN})
    if(SOURCE MATCHES "(${ALONE})\\.cpp$")
      continue()
    endif()
    get_filename_component(FOLDER ${SOURCE} DIRECTORY)
    file(RELATIVE_PATH FOLDER ${CMAKE_CURRENT_SOURCE_DIR} ${FOLDER})
    string(MAKE_C_IDENTIFIER ${FOLDER} NAME)
    if(NOT DEFINED ${NAME}_COUNT)
      set(${NAME}_COUNT 0)
    endif()
    math(EXPR GROUP "${${NAME}_COUNT} / ${FILES_MAX}")
    math(EXPR ${NAME}_COUNT "${${NAME}_COUNT} + 1")
    set_source_files_properties(${SOURCE} PROPERTIES UNITY_GROUP ${NAME}_${GROUP})
  endforeach()
endfunction()
