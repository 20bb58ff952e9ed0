// For readers that open files: bytes in one, gone at the end.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "fmt/format.h"

namespace wavetank::fuzz {

class TheirFile {
 public:
  TheirFile(std::string_view bytes, std::string_view name)
      : path_(std::filesystem::temp_directory_path() / fmt::format("wavetank-fuzz-{}-{}", getpid(), name)) {
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  ~TheirFile() {
    std::error_code error;
    std::filesystem::remove(path_, error);
  }
  TheirFile(const TheirFile&) = delete;
  TheirFile& operator=(const TheirFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  const std::filesystem::path path_;
};

}  // namespace wavetank::fuzz
