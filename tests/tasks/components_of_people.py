"""From a CSV file with names to the connected components of the people, joined back to a pandas data frame."""

import pandas as pd

import gpu_pregel as gp

with open("people.csv", "w") as file:
    file.write(
        'from,to,since,amount\nalice,"Smith, Bob",2019,5\n"Smith, Bob",carol,2020,1\ndave,eve,2021,7\n1,eve,2022,2\n'
    )

graph = gp.read_graph("people.csv", weight="amount")
components = gp.connected_components(graph)
people = pd.DataFrame({"name": ["eve", "alice", "1", "carol"], "age": [41, 35, 18, 52]})
joined = people.merge(components.to_pandas(), left_on="name", right_on="vertex")

print(graph)
print(joined.groupby("component")["age"].mean().to_dict())
print(components["carol"], components["Smith, Bob"], components.count)
