# Envoy's API as C++: the target wavetank_envoy_protos, and wavetank_grpc with the ADS, SDS and CA service stubs.
#
# The descriptors come from the PyPI wheel xds-protos (version and hash pinned in core/proto/requirements.txt), fetched
# once into the build folder. Neither .proto files nor generated code are part of the repository.

# A second build folder (sanitizers, another optimisation level) may take the library of the first: generated code is
# the same, uninstrumented and warning-free in all of them, and by far the longest part of a build.
set(WAVETANK_PROTOS_FROM "" CACHE PATH "Build folder whose wavetank_envoy_protos is used instead of building it anew")
if(WAVETANK_PROTOS_FROM)
  set(proto_library ${WAVETANK_PROTOS_FROM}/libwavetank_envoy_protos.a)
  if(NOT EXISTS ${proto_library} OR NOT EXISTS ${WAVETANK_PROTOS_FROM}/libwavetank_grpc.a)
    message(FATAL_ERROR "WAVETANK_PROTOS_FROM: build the targets wavetank_envoy_protos and wavetank_grpc there first")
  endif()
  add_library(wavetank_envoy_protos STATIC IMPORTED GLOBAL)
  set_target_properties(wavetank_envoy_protos PROPERTIES IMPORTED_LOCATION ${proto_library})
  target_include_directories(wavetank_envoy_protos SYSTEM INTERFACE ${WAVETANK_PROTOS_FROM}/proto/gen)
  target_link_libraries(wavetank_envoy_protos INTERFACE protobuf::libprotobuf)
  add_library(wavetank_grpc STATIC IMPORTED GLOBAL)
  set_target_properties(wavetank_grpc PROPERTIES IMPORTED_LOCATION ${WAVETANK_PROTOS_FROM}/libwavetank_grpc.a)
  target_link_libraries(wavetank_grpc INTERFACE wavetank_envoy_protos gRPC::grpc++ absl::synchronization)
  return()
endif()

set(proto_source ${PROJECT_SOURCE_DIR}/core/proto)
set(proto_build ${PROJECT_BINARY_DIR}/proto)
set(proto_gen ${proto_build}/gen)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${proto_source}/requirements.txt ${proto_source}/roots.txt
  ${proto_source}/extract_descriptors.py)
file(GLOB own_protos CONFIGURE_DEPENDS ${proto_source}/istio/*.proto)

set(stamp_inputs "")
foreach(file ${proto_source}/requirements.txt ${proto_source}/roots.txt ${proto_source}/extract_descriptors.py ${own_protos})
  file(SHA256 ${file} hash)
  string(APPEND stamp_inputs ${hash})
endforeach()
string(SHA256 proto_stamp "${stamp_inputs}")
set(stamp_file ${proto_build}/stamp)
set(old_stamp "")
if(EXISTS ${stamp_file})
  file(READ ${stamp_file} old_stamp)
endif()

function(run_or_stop)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    string(REPLACE ";" " " command "${ARGN}")
    message(FATAL_ERROR "${command}\n${output}")
  endif()
endfunction()

if(NOT old_stamp STREQUAL proto_stamp)
  find_program(WAVETANK_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)
  find_program(PROTOC protoc REQUIRED)
  file(REMOVE_RECURSE ${proto_build})
  file(MAKE_DIRECTORY ${proto_gen})
  message(STATUS "Fetching Envoy's API descriptors (PyPI xds-protos)")
  run_or_stop(${WAVETANK_PYTHON} -m venv ${proto_build}/venv)
  run_or_stop(${proto_build}/venv/bin/pip download --quiet --disable-pip-version-check --no-deps --require-hashes
    --dest ${proto_build}/wheel --requirement ${proto_source}/requirements.txt)
  file(GLOB wheel ${proto_build}/wheel/*.whl)
  run_or_stop(${WAVETANK_PYTHON} ${proto_source}/extract_descriptors.py ${wheel} ${proto_source}/roots.txt
    ${proto_build}/envoy.fds ${proto_build}/files.txt ${proto_gen}/envoy_api.cc)
  file(STRINGS ${proto_build}/files.txt proto_files)
  run_or_stop(${PROTOC} --descriptor_set_in=${proto_build}/envoy.fds --cpp_out=${proto_gen} ${proto_files})
  # protoc 3.21 does not know that `requires`, a field of JWT rules, is a keyword now; its successors write requires_.
  foreach(file config.pb.h config.pb.cc)
    set(file ${proto_gen}/envoy/extensions/filters/http/jwt_authn/v3/${file})
    file(READ ${file} text)
    string(REGEX REPLACE "([^A-Za-z0-9_.])requires([^A-Za-z0-9_])" "\\1requires_\\2" text "${text}")
    file(WRITE ${file} "${text}")
  endforeach()
  run_or_stop(${PROTOC} -I${proto_source} --cpp_out=${proto_gen} ${own_protos})
  find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
  run_or_stop(${PROTOC} --descriptor_set_in=${proto_build}/envoy.fds --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN}
    --grpc_out=${proto_gen} envoy/service/discovery/v3/ads.proto envoy/service/secret/v3/sds.proto)
  run_or_stop(${PROTOC} -I${proto_source} --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN} --grpc_out=${proto_gen}
    ${proto_source}/istio/ca.proto)
  file(WRITE ${stamp_file} "${proto_stamp}")
endif()

file(GLOB_RECURSE proto_cc ${proto_gen}/*.pb.cc)
set(grpc_cc ${proto_cc})
list(FILTER grpc_cc INCLUDE REGEX "\\.grpc\\.pb\\.cc$")
list(FILTER proto_cc EXCLUDE REGEX "\\.grpc\\.pb\\.cc$")

add_library(wavetank_envoy_protos STATIC ${proto_cc} ${proto_gen}/envoy_api.cc)
set_source_files_properties(${proto_gen}/envoy_api.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
target_include_directories(wavetank_envoy_protos SYSTEM PUBLIC ${proto_gen})
target_link_libraries(wavetank_envoy_protos PUBLIC protobuf::libprotobuf)
# protoc 3.21 repeats two names of file scope in every file, which a unity build has to keep apart.
set_target_properties(wavetank_envoy_protos PROPERTIES
  UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16 UNITY_BUILD_UNIQUE_ID WAVETANK_UNITY_ID
  UNITY_BUILD_CODE_BEFORE_INCLUDE "
#define WAVETANK_JOIN2(a, b) a##b
#define WAVETANK_JOIN(a, b) WAVETANK_JOIN2(a, b)
#undef schemas
#undef file_default_instances
#define schemas WAVETANK_JOIN(schemas_, WAVETANK_UNITY_ID)
#define file_default_instances WAVETANK_JOIN(file_default_instances_, WAVETANK_UNITY_ID)
")
# Generated code: -O1 is within 15 % of -O2 and compiles in half the time; nothing in it throws or catches, and without
# the paths for it another seventh is saved; no debug information, no warnings.
target_compile_options(wavetank_envoy_protos PRIVATE -O1 -fno-exceptions -g0 -w)

add_library(wavetank_grpc STATIC EXCLUDE_FROM_ALL ${grpc_cc})
target_link_libraries(wavetank_grpc PUBLIC wavetank_envoy_protos gRPC::grpc++ absl::synchronization)
target_compile_options(wavetank_grpc PRIVATE -O1 -g0 -w)
