// The JSON library's declarations, with our own container for the members of objects (core/base/json/json_map.h) in place
// of std::map. Found before the system's header, of which this is all that others need; the container is the library's
// own parameter, and its other parameters are as the library has them.
#ifndef INCLUDE_NLOHMANN_JSON_FWD_HPP_
#define INCLUDE_NLOHMANN_JSON_FWD_HPP_

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/detail/abi_macros.hpp>
#include <string>
#include <vector>

#include "core/base/json/json_map.h"

NLOHMANN_JSON_NAMESPACE_BEGIN

template <typename T = void, typename SFINAE = void>
struct adl_serializer;

template <template <typename, typename, typename...> class ObjectType = wavetank::JsonMap,
          template <typename, typename...> class ArrayType = std::vector, class StringType = std::string,
          class BooleanType = bool, class NumberIntegerType = std::int64_t, class NumberUnsignedType = std::uint64_t,
          class NumberFloatType = double, template <typename> class AllocatorType = std::allocator,
          template <typename, typename = void> class JSONSerializer = adl_serializer,
#if NLOHMANN_JSON_VERSION_MAJOR * 10000 + NLOHMANN_JSON_VERSION_MINOR * 100 + NLOHMANN_JSON_VERSION_PATCH >= 31103
          class BinaryType = std::vector<std::uint8_t>, class CustomBaseClass = void>
#else
          class BinaryType = std::vector<std::uint8_t>>
#endif
class basic_json;

template <typename RefStringType>
class json_pointer;

using json = basic_json<>;

template <class Key, class T, class IgnoredLess, class Allocator>
struct ordered_map;

using ordered_json = basic_json<nlohmann::ordered_map>;

NLOHMANN_JSON_NAMESPACE_END

#endif
