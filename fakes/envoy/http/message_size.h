// How many bytes messages have, as HTTP/1.1 writes them: of what the simulation carries of heads, bodies and trailers.
// Real ones have headers more, of applications, traces and peers.
#pragma once

#include <cstdint>
#include <string_view>

namespace wavetank::envoysim {

struct RequestSpec;

uint64_t MessageSize(const RequestSpec& request);
// Of an answer: its code, its headers and trailers as lines (Reply::headers), and its body, whose length the headers
// may say instead.
uint64_t MessageSize(uint16_t code, std::string_view headers, std::string_view body, std::string_view trailers);

}  // namespace wavetank::envoysim
