# oneDNN: its headers give types and enumerators only; the library is opened at run time,
# so that any later libdnnl.so.3 serves. A copy travels inside the package.
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(ONEDNN_DEFAULT ON)
else()
  set(ONEDNN_DEFAULT OFF)
endif()
option(TIGHTSHIP_ONEDNN "Build the oneDNN kernels" ${ONEDNN_DEFAULT})

if(TIGHTSHIP_ONEDNN)
  execute_process(
    COMMAND ${Python_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/find_onednn.py
    OUTPUT_VARIABLE ONEDNN_FILES OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE ONEDNN_MISSING)
  if(ONEDNN_MISSING)
    message(FATAL_ERROR "oneDNN's wheels are not installed; configure with -DTIGHTSHIP_ONEDNN=OFF "
                        "to build without its kernels.")
  endif()
  list(GET ONEDNN_FILES 0 ONEDNN_INCLUDE_DIR)
  list(GET ONEDNN_FILES 1 ONEDNN_LIBRARY)
  list(GET ONEDNN_FILES 2 ONEDNN_LICENSE_DIR)
  target_include_directories(tightship_native SYSTEM PUBLIC ${ONEDNN_INCLUDE_DIR})
  target_compile_definitions(tightship_native PUBLIC TIGHTSHIP_ONEDNN)
  set(ONEDNN_COPY ${CMAKE_CURRENT_BINARY_DIR}/onednn/libdnnl.so.3)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/onednn)
  set(BUNDLE_SCRIPT ${CMAKE_CURRENT_SOURCE_DIR}/bundle_onednn.py)
  add_custom_command(
    OUTPUT ${ONEDNN_COPY}
    COMMAND ${Python_EXECUTABLE} ${BUNDLE_SCRIPT} ${ONEDNN_LIBRARY} $<TARGET_FILE:tightship_omp>
            ${ONEDNN_COPY}
    DEPENDS ${BUNDLE_SCRIPT} ${ONEDNN_LIBRARY} tightship_omp)
  add_custom_target(bundled_onednn ALL DEPENDS ${ONEDNN_COPY})
  install(FILES ${ONEDNN_COPY} DESTINATION tightship)
  install(FILES ${ONEDNN_LICENSE_DIR}/LICENSE ${ONEDNN_LICENSE_DIR}/THIRD-PARTY-PROGRAMS
          DESTINATION tightship/licenses/onednn)
  if(CMAKE_STRIP)
    install(CODE "execute_process(COMMAND ${CMAKE_STRIP} --strip-unneeded \
                  \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/tightship/libdnnl.so.3)")
  endif()
endif()
