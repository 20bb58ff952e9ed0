// The places where bytes of the outside come in, each as a function that takes any bytes. Two programs give them some:
// hostile_bytes_test.cc a few thousand altered samples, always; libfuzzer/main.cc what coverage asks for, as long as
// one likes (tools/fuzz).
#pragma once

#include <span>
#include <string_view>

namespace wavetank::fuzz {

struct Border {
  const char* name;                      // also the folder of its samples: corpus/NAME
  void (*take)(std::string_view bytes);  // returns, whatever they are: neither throws nor ends the process
  int cost;                              // of one call against the cheapest border's: fewer samples are taken
};

std::span<const Border> Borders();

}  // namespace wavetank::fuzz
