// Exceptions, thread-local objects with constructors, iostreams, std::thread.
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

thread_local std::string name = "fresh";

int main()
{
    std::vector<std::thread> threads;
    int failures = 0;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([i, &failures] {
            try {
                if (name != "fresh")
                    failures++;
                name = std::to_string(i);
                throw std::runtime_error(name);
            } catch (const std::exception &caught) {
                if (caught.what() != std::to_string(i))
                    failures++;
            }
        });
    for (auto &thread : threads)
        thread.join();
    std::cout << (failures ? "failed" : "done") << std::endl;
    return failures;
}
