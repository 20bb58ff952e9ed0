# Precompiled headers: two thirds of a compile here go into reading the same few headers. They are compiled once and
# used by every folder's library; a second set, with the test frameworks, is for the tests.
#
# Not together with ccache: a change of one header is then a miss everywhere, and such builds show that every file
# includes what it uses.
if(CCACHE)
  set(WAVETANK_PRECOMPILED_HEADERS_DEFAULT OFF)
else()
  set(WAVETANK_PRECOMPILED_HEADERS_DEFAULT ON)
endif()
option(WAVETANK_PRECOMPILED_HEADERS "Compile common headers once" ${WAVETANK_PRECOMPILED_HEADERS_DEFAULT})
if(WAVETANK_PRECOMPILED_HEADERS)
  add_compile_options(-pthread)  # its macro must be the same for all who share them
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC forgets that a precompiled header came from the system, and then warns of ghosts in its strings.
    add_compile_options(-Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endif()

set(WAVETANK_COMMON_HEADERS <algorithm> <deque> <functional> <map> <memory> <optional> <set> <string> <string_view>
  <utility> <variant> <vector> <absl/container/flat_hash_map.h> <absl/functional/any_invocable.h>
  <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/strings/str_split.h> <fmt/format.h> <nlohmann/json.hpp>)
set(WAVETANK_MESSAGE_HEADERS <google/protobuf/any.pb.h> <google/protobuf/struct.pb.h> <google/protobuf/wrappers.pb.h>
  <envoy/config/core/v3/base.pb.h> <envoy/config/endpoint/v3/endpoint.pb.h>)

# wavetank_precompile(SET LIBRARIES... HEADERS...): an object library `SET` that holds nothing but the headers.
function(wavetank_precompile set)
  cmake_parse_arguments(ARG "" "" "LINK;HEADERS" ${ARGN})
  if(NOT WAVETANK_PRECOMPILED_HEADERS)
    return()
  endif()
  file(WRITE ${PROJECT_BINARY_DIR}/${set}.cc "")
  add_library(${set} OBJECT ${PROJECT_BINARY_DIR}/${set}.cc)
  target_link_libraries(${set} PRIVATE ${ARG_LINK})
  target_precompile_headers(${set} PRIVATE ${ARG_HEADERS})
endfunction()

# Lets `target` read what wavetank_precompile(SET) compiled, if it did.
function(wavetank_use_precompiled target set)
  if(TARGET ${set})
    target_precompile_headers(${target} REUSE_FROM ${set})
  endif()
endfunction()
