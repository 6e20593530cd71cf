"""Surfaces of equal value of ParaView's wavelet, of which each rank has a part. (A picture needs an X server.)"""
from paraview import servermanager
from paraview.simple import Contour, IntegrateVariables, Wavelet

contour = Contour(Input=Wavelet(), ContourBy=["POINTS", "RTData"], Isosurfaces=[150.0, 200.0])
whole = IntegrateVariables(Input=contour)
whole.UpdatePipeline()
cells = contour.GetDataInformation().GetNumberOfCells()
module = servermanager.vtkProcessModule.GetProcessModule()
data = servermanager.Fetch(whole)
if module.GetPartitionId() == 0:
    area = data.GetCellData().GetArray("Area").GetValue(0)
    print("values", module.GetNumberOfLocalPartitions(), cells, f"{area:.6f}", flush=True)
